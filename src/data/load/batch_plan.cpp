#include "data/load/batch_plan.hpp"

#include <algorithm>

namespace lockstep::data {
namespace {

std::uint64_t divide_up(std::uint64_t a, std::uint64_t b) noexcept { return a / b + (a % b != 0 ? 1 : 0); }

/// The first element of part `i` of `n` elements cut into `n_parts`: n * i / n_parts without overflow.
std::uint64_t cut(std::uint64_t n, std::uint64_t i, std::uint64_t n_parts) noexcept {
  return n / n_parts * i + n % n_parts * i / n_parts;
}

/// The rest of `n` from `first` on, at most `most`.
std::uint64_t rest(std::uint64_t n, std::uint64_t first, std::uint64_t most) noexcept {
  return first < n ? std::min(n - first, most) : 0;
}

}  // namespace

BatchPlan::BatchPlan(const Options& options) noexcept : options_{options}, n_positions_{options.n_samples} {
  const std::uint64_t per_rank = divide_up(options_.n_samples, options_.n_ranks);
  if (options_.deal == Deal::ranges) {
    n_batches_ = divide_up(per_rank, rank_batch());
    return;
  }
  if (options_.deal == Deal::strided) n_positions_ = per_rank * options_.n_ranks;
  n_batches_ =
      options_.drop_last ? n_positions_ / options_.global_batch : divide_up(n_positions_, options_.global_batch);
}

std::uint64_t BatchPlan::rank_batch() const noexcept {
  return std::max<std::uint64_t>(1, options_.global_batch / options_.n_ranks);
}

std::uint64_t BatchPlan::most() const noexcept {
  const std::uint64_t batch = std::min(options_.global_batch, n_positions_);
  if (options_.deal == Deal::ranges) return std::min(rank_batch(), options_.n_samples);
  if (options_.deal == Deal::strided) return divide_up(batch, options_.n_ranks);
  // Every term grows with `batch`, so no smaller batch gives more.
  const std::uint64_t n_units = divide_up(divide_up(batch, options_.unit), options_.n_ranks / options_.n_together);
  return divide_up(std::min(n_units * options_.unit, batch), options_.n_together);
}

Share BatchPlan::share(std::uint64_t batch) const noexcept {
  if (options_.deal == Deal::ranges) return range_share(batch);
  const std::uint64_t rank = options_.rank, n_ranks = options_.n_ranks;
  const std::uint64_t first = batch * options_.global_batch;
  const std::uint64_t n = rest(n_positions_, first, options_.global_batch);
  if (options_.deal == Deal::slices) return slice_share(first, n);
  const std::uint64_t skip = (rank + n_ranks - first % n_ranks) % n_ranks;  // to this rank's first position
  return {.first = first + skip, .stride = n_ranks, .n = n > skip ? divide_up(n - skip, n_ranks) : 0, .n_global = n};
}

// This rank's share of the `n` samples of a batch that begins at `first`.
Share BatchPlan::slice_share(std::uint64_t first, std::uint64_t n) const noexcept {
  const std::uint64_t unit = options_.unit, n_together = options_.n_together, n_groups = options_.n_ranks / n_together;
  const std::uint64_t group = options_.rank / n_together, place = options_.rank % n_together;
  const auto begin_of = [&](std::uint64_t g) { return std::min(n, unit * cut(divide_up(n, unit), g, n_groups)); };
  const std::uint64_t of_group = begin_of(group), n_of_group = begin_of(group + 1) - of_group;
  const std::uint64_t begin = cut(n_of_group, place, n_together), end = cut(n_of_group, place + 1, n_together);
  return {.first = first + of_group + begin, .stride = 1, .n = end - begin, .n_global = n};
}

Share BatchPlan::range_share(std::uint64_t batch) const noexcept {
  const std::uint64_t n_ranks = options_.n_ranks, done = batch * rank_batch();
  const std::uint64_t begin = cut(options_.n_samples, options_.rank, n_ranks);
  const std::uint64_t length = cut(options_.n_samples, options_.rank + 1, n_ranks) - begin;
  // This many ranks have a range that is longer by one.
  const std::uint64_t n_longer = options_.n_samples % n_ranks, shorter = options_.n_samples / n_ranks;
  return {.first = begin + done,
          .stride = 1,
          .n = rest(length, done, rank_batch()),
          .n_global = n_longer * rest(shorter + 1, done, rank_batch()) +
                      (n_ranks - n_longer) * rest(shorter, done, rank_batch())};
}

}  // namespace lockstep::data

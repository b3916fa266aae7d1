#include "parallel/lanes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "comm/loops.hpp"
#include "core/error.hpp"

namespace lockstep::parallel {
namespace {

/// The number of partial sums that wait for their other half while lane `local` is computed: the ones of a binary
/// counter.
std::size_t n_waiting(int local) noexcept {
  return static_cast<std::size_t>(std::popcount(static_cast<unsigned>(local)));
}

/// "1, 2 or 4 ranks": the numbers that divide a power of two.
std::string ranks_for(int n_lanes) {
  std::string text = "1";
  for (int n = 2; n <= n_lanes; n *= 2) text += fmt::format("{}{}", n < n_lanes ? ", " : " or ", n);
  return text + (n_lanes > 1 ? " ranks" : " rank");
}

}  // namespace

void require_lanes(int n_lanes, int n_ranks) {
  const bool is_power = n_lanes > 0 && std::has_single_bit(static_cast<unsigned>(n_lanes));
  if (is_power && n_lanes % n_ranks == 0) return;
  core::fail_usage({.what = fmt::format("a deterministic run of {} lanes on {} ranks", n_lanes, n_ranks),
                    .where = "deterministic",
                    .expected = "a power of two of lanes, and a number of ranks that divides it",
                    .fix = is_power ? fmt::format("use {}", ranks_for(n_lanes)) : "use 8 lanes"});
}

core::Slice lane_samples(std::size_t global_batch, int n_lanes, int lane) noexcept {
  const auto cut = [&](int i) {
    return global_batch * static_cast<std::size_t>(i) / static_cast<std::size_t>(n_lanes);
  };
  return {.offset = cut(lane), .count = cut(lane + 1) - cut(lane)};
}

double sum_lanes(std::span<const double> lanes) noexcept {
  if (lanes.size() == 1) return lanes.front();
  const std::size_t half = lanes.size() / 2;
  return sum_lanes(lanes.first(half)) + sum_lanes(lanes.subspan(half));
}

Lanes::Lanes(int n_lanes, int rank, int n_ranks, std::span<float> gradients)
    : first_{0}, n_local_{0}, gradients_{gradients} {
  require_lanes(n_lanes, n_ranks);
  n_local_ = n_lanes / n_ranks;
  first_ = rank * n_local_;
  while (waiting_.size() < n_waiting(n_local_ - 1))
    waiting_.push_back(memory_.emplace_back(core::Bytes{gradients.size_bytes()}).as<float>());
}

void Lanes::lane_done(int local) {
  const comm::Combine add = comm::loops().find_combine(core::DType::float32, comm::ReduceOp::sum);
  std::size_t n = n_waiting(local);
  const int n_merges = std::countr_one(static_cast<unsigned>(local));
  const bool is_last = local + 1 == n_local_;
  if (n_merges == 0 && !is_last) std::ranges::copy(gradients_, waiting_[n].begin());
  for (int merge = 1; merge <= n_merges; ++merge) {
    const std::span<float> earlier = waiting_[--n];
    const std::span<float> sum = merge == n_merges && !is_last ? earlier : gradients_;
    add(std::as_writable_bytes(sum).data(), std::as_bytes(earlier).data(), std::as_bytes(gradients_).data(),
        gradients_.size());
  }
}

}  // namespace lockstep::parallel

#include "parallel/lanes.hpp"

#include <fmt/format.h>

#include <bit>

#include "comm/kernels.hpp"
#include "core/error.hpp"

namespace lockstep::parallel {
namespace {

/// Partial sums that wait for their other half while lane `local` is computed, as a binary counter has ones.
std::size_t n_waiting(int local) noexcept {
  return static_cast<std::size_t>(std::popcount(static_cast<unsigned>(local)));
}

/// "1, 2 or 4 ranks", of those that divide a power of two.
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
                    .expected = "lanes that are a power of two, and ranks that divide them",
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

Lanes::Lanes(int n_lanes, int rank, int n_ranks, std::span<float> sum) : first_{0}, n_local_{0} {
  require_lanes(n_lanes, n_ranks);
  n_local_ = n_lanes / n_ranks;
  first_ = rank * n_local_;
  arenas_.push_back(sum);
  const std::size_t n_arenas = n_waiting(n_local_ - 1) + 1;
  while (arenas_.size() < n_arenas) arenas_.push_back(memory_.emplace_back(core::Bytes{sum.size_bytes()}).as<float>());
}

std::span<float> Lanes::gradients(int local) const noexcept { return arenas_[n_waiting(local)]; }

void Lanes::lane_done(int local) {
  const comm::Combine add = comm::kernels().find_combine(core::DType::float32, comm::ReduceOp::sum);
  std::size_t top = n_waiting(local);
  for (int merges = std::countr_one(static_cast<unsigned>(local)); merges > 0; --merges, --top) {
    std::byte* const sum = std::as_writable_bytes(arenas_[top - 1]).data();
    add(sum, sum, std::as_bytes(arenas_[top]).data(), arenas_[top].size());
  }
}

}  // namespace lockstep::parallel

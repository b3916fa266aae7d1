// The messages between nodes that a step of the host's synchronizer will send, counted before it.
// Invariant: exact without rows; what rows take depends on how many are touched, so it is the most that they can take.
// Used by the dry run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/registry.hpp"
#include "parallel/sharding.hpp"
#include "parallel/strategy.hpp"

namespace lockstep::parallel {

struct TrafficSetting {
  std::vector<int> nodes{};  ///< of all ranks, as a Transport numbers them
  Strategy strategy = Strategy::ddp;
  std::vector<core::Slice> unit_reads{};  ///< as in SynchronizerOptions
  std::size_t prefetch = 1;
  std::uint64_t n_passes = 1;  ///< forward and backward, of each rank in a step
  bool is_deterministic = false;
  bool clips = false;                         ///< measures the norm of the gradient
  bool has_norms = false;                     ///< the optimizer needs norms of tensors
  std::vector<std::uint64_t> rows_touched{};  ///< of each slot, at most, by all ranks together; empty without tables
};

/// Returns what all ranks together send in a step. `sharding`: of the strategy and the placement on these nodes.
[[nodiscard]] comm::Cost count_traffic(const Sharding& sharding, const TrafficSetting& setting);

}  // namespace lockstep::parallel

// The messages between nodes that a step of the host's synchronizer will send, counted before it.
// Invariant: exact without rows; what rows take depends on how many are touched, so it is the most that they can take.
// Used by the dry run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/registry.hpp"
#include "parallel/sharding.hpp"

namespace lockstep::parallel {

struct TrafficSetting {
  std::vector<int> nodes{};  ///< of all ranks, as a Transport numbers them
  bool is_deterministic = false;
  bool clips = false;                         ///< measures the norm of the gradient
  bool has_norms = false;                     ///< the optimizer needs norms of tensors
  std::vector<std::uint64_t> rows_touched{};  ///< of each slot, at most, by all ranks together; empty without tables
};

/// Of all ranks together. `sharding`: of the placement on these nodes.
[[nodiscard]] comm::Cost count_traffic(const Sharding& sharding, const TrafficSetting& setting);

}  // namespace lockstep::parallel

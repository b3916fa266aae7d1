// Where the ranks of a node of hosts keep parameters and gradients: whole, or units in turns.
// Invariant: a pure value of strategy, sharding and passes, so that a dry run knows every byte.
// Used by the host's synchronizer, and by forecasts of memory and traffic.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "parallel/kept_elements.hpp"
#include "parallel/sharding.hpp"
#include "parallel/strategy.hpp"
#include "parallel/unit_turns.hpp"
#include "runtime/device.hpp"

namespace lockstep::parallel {

struct HostPlaces {
  BucketPlaces parameters{};  ///< in the memory that the ranks of a node share
  BucketPlaces gradients{};   ///< in that of each rank
};

/// Nodes gather units only between them, so one node keeps whole parameters. If a step makes several backward passes,
/// whose gradients are added before those of ranks are, each rank keeps whole gradients: see `is_one_pass`.
[[nodiscard]] HostPlaces plan_host_places(Strategy strategy, const Sharding& sharding, const UnitTurns& turns,
                                          const Placement& placement, bool is_one_pass);

[[nodiscard]] KeptElements count_kept(const Sharding& sharding, const HostPlaces& places);

/// Memory of this rank alone for its parts of the buckets in a pool.
class OwnParts {
 public:
  OwnParts(std::span<const Share> shares, const BucketPlaces& places);

  /// One for each bucket; empty if the bucket is not in the pool.
  [[nodiscard]] const std::vector<std::span<float>>& all() const noexcept { return parts_; }
  [[nodiscard]] std::size_t n_bytes() const noexcept { return memory_.bytes().size(); }

 private:
  runtime::Buffer memory_;
  std::vector<std::span<float>> parts_{};
};

}  // namespace lockstep::parallel

// How fast ranks of different nodes send to each other, measured on the spot.
// Invariant: sends as a step does: one rank of each node sums with its partners on other nodes, all at once.
// Used by the dry run.
#pragma once

#include <cstdint>
#include <optional>

#include "comm/transport.hpp"
#include "core/units.hpp"

namespace lockstep::training {

struct LinkRate {
  double GBps = 0;                  ///< that each rank sends
  std::uint64_t message_bytes = 0;  ///< of the vector that was summed

  [[nodiscard]] core::Seconds time_of(std::uint64_t bytes_of_rank) const noexcept {
    return {static_cast<double>(bytes_of_rank) / (GBps * 1e9)};
  }
};

/// Collective: the best of a few all-reduces between nodes; nothing on one node. The same on all ranks. `world` must
/// outlive the call only.
[[nodiscard]] std::optional<LinkRate> measure_link_rate(comm::Transport& world);

}  // namespace lockstep::training

// The machine as algorithms see it: messages between ranks, memory shared on a node, subgroups.
// Invariant: algorithms see ranks only through this, so they run unchanged over MPI processes and over threads.
// Messages go point to point, memory is shared without MPI; no collective of MPI moves data (that is algorithm `mpi`).
// Used by the algorithms, parallel/, data/load/store_cached and the programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "runtime/communicator.hpp"
#include "runtime/topology.hpp"

namespace lockstep::comm {

using runtime::Channel;
using runtime::SharedSegment;

/// A rank's place in its node; numbers are equal for ranks that share the place, and equal if unknown.
struct Seat {
  int socket = 0;
  int cache = 0;  ///< the last-level cache
};

/// The places of the ranks of a transport, by rank.
struct Seating {
  std::vector<int> nodes{};       ///< counted from 0 in order of the lowest rank; ranks of one node can share memory
  std::vector<int> real_nodes{};  ///< without simulated ones
  std::vector<Seat> seats{};
  bool is_crowded = false;  ///< ranks share cores, so a waiting rank must yield the processor at once
};

/// Messages of this rank to others.
struct Sent {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;

  constexpr Sent& operator+=(const Sent& other) noexcept {
    messages += other.messages;
    bytes += other.bytes;
    return *this;
  }
  friend constexpr Sent operator-(const Sent& a, const Sent& b) noexcept {
    return {a.messages - b.messages, a.bytes - b.bytes};
  }
  bool operator==(const Sent&) const = default;
};

/// A group of ranks, how they reach each other, and where they are.
class Transport {
 public:
  Transport(std::unique_ptr<runtime::Communicator> communicator, Seating seating)
      : communicator_{std::move(communicator)}, seating_{std::move(seating)} {}

  [[nodiscard]] int rank() const noexcept { return communicator_->rank(); }
  [[nodiscard]] int n_ranks() const noexcept { return communicator_->n_ranks(); }
  /// Node index of every rank.
  [[nodiscard]] const std::vector<int>& nodes() const noexcept { return seating_.nodes; }
  [[nodiscard]] int n_nodes() const noexcept;
  /// The number of nodes without simulated ones, as libraries that look for themselves count them.
  [[nodiscard]] int n_real_nodes() const noexcept;
  /// The seat of every rank.
  [[nodiscard]] const std::vector<Seat>& seats() const noexcept { return seating_.seats; }
  [[nodiscard]] const runtime::Communicator& communicator() const noexcept { return *communicator_; }

  /// Collective.
  [[nodiscard]] std::unique_ptr<Channel> open_channel(int n_slots) { return communicator_->open_channel(n_slots); }
  /// Collective: ranks with equal `color` form a group, ordered by `key`, then rank. The parent must outlive it.
  [[nodiscard]] std::unique_ptr<Transport> split(int color, int key);
  /// Collective over ranks of one node: shares `bytes` for each rank, zeroed and placed by its owner. The transport
  /// must outlive it.
  [[nodiscard]] std::unique_ptr<SharedSegment> share(std::size_t bytes) { return communicator_->share(bytes); }

  /// What plans of this transport, and of those that it was split into, have sent.
  [[nodiscard]] Sent sent() const noexcept { return sent_; }
  /// Plans report what they send, once per run.
  void count(const Sent& sent) noexcept {
    for (Transport* at = this; at != nullptr; at = at->parent_) at->sent_ += sent;
  }

  /// How often to look at a flag before yielding the processor: rarely if ranks share cores.
  [[nodiscard]] int spin_limit() const noexcept { return communicator_->spin_limit(seating_.is_crowded); }
  /// Called between looks after that, with the number of previous calls; throws if the group has failed.
  void relax(std::uint64_t n_before) { communicator_->relax(n_before, seating_.is_crowded); }

 private:
  std::unique_ptr<runtime::Communicator> communicator_;
  Seating seating_;
  Sent sent_{};
  Transport* parent_ = nullptr;  ///< that was split; null for the first
};

struct TransportOptions {
  /// Greater than 0: simulate nodes of this many ranks each.
  int ranks_per_node = 0;
  /// The placement of `world`, if known: nodes, seats, and whether ranks share cores. Otherwise nodes are detected, and
  /// seats are unknown.
  const runtime::Topology* topology = nullptr;
  /// Assumes that ranks share cores, so a waiting rank must yield the processor at once.
  bool oversubscribed = false;
};

/// Collective over `world`.
[[nodiscard]] std::unique_ptr<Transport> make_transport(const runtime::Communicator& world,
                                                        const TransportOptions& options);

/// Returns the nodes of ranks that have one each.
[[nodiscard]] std::vector<int> one_rank_each(int n_nodes);

/// Renumbers any labels, one per rank, as indices from 0 in order of first appearance.
[[nodiscard]] std::vector<int> renumber(const std::vector<int>& labels);

}  // namespace lockstep::comm

// Detects parameters that differ from what was computed: a flipped bit, a stray write, a node that computes wrongly.
// Invariant: an owner knows the hash of each piece that it wrote; it reports only real differences of bits.
// Used by the synchronizer.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/transport.hpp"
#include "parallel/slots.hpp"

namespace lockstep::parallel {

class ReplicaGuard {
 public:
  /// Guards `pieces` of `slots`, which only this rank of `world` writes; both transports must outlive it. `between`:
  /// the owners of the same pieces on all nodes.
  ReplicaGuard(std::span<const Slot> slots, std::vector<Piece> pieces, comm::Transport& world,
               comm::Transport& between);

  /// Records the hashes of the parameters just written.
  void record(std::span<const float> parameters);

  /// Called before a write: returns whether everything is as recorded, or nothing was recorded since the last call.
  [[nodiscard]] bool verify(std::span<const float> parameters);
  /// Whether there is something to verify.
  [[nodiscard]] bool is_recorded() const noexcept { return is_recorded_; }
  /// Throws core::Error (failed), with the tensor and its writer, if verify() has found a change on this rank.
  void fail_for_change() const;

  /// The hash of the last record: equal for the owners of the same slices on all nodes.
  [[nodiscard]] std::uint32_t hash() const noexcept;

  /// Collective over all ranks, after replicas were found to differ: throws core::Error (failed) with the first tensor
  /// that differs, the node, and its writer there; the same on all ranks.
  [[noreturn]] void fail_for_replicas();

 private:
  [[nodiscard]] std::uint64_t find_stray();

  std::vector<Piece> pieces_;
  std::vector<std::string> names_;  ///< of all slots
  std::vector<std::uint32_t> hashes_;
  comm::Transport& world_;
  comm::Transport& between_;
  bool is_recorded_ = false;
  std::optional<std::size_t> changed_{};  ///< the index of the piece
  std::uint32_t found_ = 0;               ///< the hash that it had
};

}  // namespace lockstep::parallel

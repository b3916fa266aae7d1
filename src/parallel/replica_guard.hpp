// Detects parameters that differ from what was computed: a flipped bit, a stray write, a node that computes wrongly.
// Invariant: an owner knows the hash of each piece that it wrote; it reports only real differences of bits.
// Used by the synchronizer; the trainer asks it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/transport.hpp"
#include "parallel/slots.hpp"

namespace lockstep::parallel {

/// Returns a hash of the parameters of a piece, computed where they are. Equal pieces on other nodes have equal ones.
using HashPiece = std::function<std::uint64_t(const Piece&)>;

class ReplicaGuard {
 public:
  /// Guards pieces of `slots`, which only this rank of `world` writes; both transports must outlive it. `between`: the
  /// owners of the `replicated` pieces on all nodes. No other rank has `unique` pieces. `interval`: steps between
  /// records; 0: never records.
  ReplicaGuard(std::span<const Slot> slots, std::vector<Piece> replicated, std::span<const Piece> unique,
               comm::Transport& world, comm::Transport& between, std::uint64_t interval);

  /// Whether this rank has found a change since restart().
  [[nodiscard]] bool has_changed() const noexcept { return changed_.has_value(); }
  /// Local: throws core::Error (failed) with tensor, node and rank if has_changed().
  void fail_for_change() const;
  /// Parameters that this rank read after at most this many steps are sound. Any change that the guard or the
  /// control word has just found, or finds from now on, came later. Callers use the minimum over all ranks.
  [[nodiscard]] std::uint64_t n_sound_steps() const noexcept;
  /// The hash of the parameters at the last record, from one rank of each replica, for the control word.
  [[nodiscard]] std::optional<std::uint32_t> replica_hash() const noexcept { return replica_hash_; }
  /// Collective over all ranks, after the control word reports that replicas differ: throws core::Error (failed) with
  /// the first tensor that differs, the node, and its writer there; the same on all ranks.
  [[noreturn]] void fail_for_replicas() const;

  /// For synchronizers. The parameters are those after `n_steps` steps, written by others: forgets a change. Returns
  /// whether they must be recorded now.
  [[nodiscard]] bool restart(std::uint64_t n_steps) noexcept;
  /// Before a step writes parameters: compares them with the record, unless that was done before.
  void verify(const HashPiece& hash);
  /// After each step that wrote parameters. Returns whether they must be recorded now.
  [[nodiscard]] bool count_step(std::uint64_t n_steps) noexcept;
  /// Records the hashes of the parameters just written, and returns a hash of those that have replicas: equal for the
  /// owners of the same pieces on all nodes.
  std::uint32_t record(const HashPiece& hash);
  void set_replica_hash(std::uint32_t hash) noexcept { replica_hash_ = hash; }

 private:
  [[nodiscard]] std::uint64_t find_stray() const;

  [[nodiscard]] std::span<const std::uint64_t> hashes_of_replicas() const noexcept {
    return std::span{hashes_}.first(n_replicated_);
  }

  std::vector<Piece> pieces_;
  std::size_t n_replicated_;
  std::vector<std::string> names_{};  ///< of all slots
  std::vector<std::uint64_t> hashes_{};
  comm::Transport& world_;
  comm::Transport& between_;
  std::uint64_t interval_;
  bool is_recorded_ = false;              ///< and not yet verified
  std::optional<std::size_t> changed_{};  ///< the index of the piece
  std::uint64_t found_ = 0;               ///< the hash that it had
  std::uint64_t n_steps_ = 0;
  std::uint64_t started_at_ = 0;        ///< steps made at restart()
  std::uint64_t record_at_ = 0;         ///< steps made at the last record
  std::uint64_t record_before_at_ = 0;  ///< and at the one before
  std::optional<std::uint32_t> replica_hash_{};
};

}  // namespace lockstep::parallel

// How far apart the cores of a node's ranks are: what a cache line takes between two of them, and how fast one core reads what
// another has just written.
// Invariant: loads and stores in shared memory only; a look takes a millisecond, and ranks that share cores give them away.
// Used by reduce_all/: its header, its limit, and to notice that a host moved the cores.
#pragma once

#include <memory>
#include <optional>

#include "comm/transport.hpp"
#include "core/units.hpp"

namespace lockstep::comm {

/// The ranks of a node form a ring; each is measured with its right neighbour.
class CoreProbe {
 public:
  /// Collective: makes room for reading up to `largest_read` at a time. `transport` must outlive it.
  CoreProbe(Transport& transport, core::Bytes largest_read);

  /// Whether this rank's node has other ranks; if not, nothing below does anything.
  [[nodiscard]] bool has_neighbour() const noexcept { return node_->n_ranks() > 1; }

  /// Collective: the round trip of a cache line between this rank and its right neighbour, as the median of short runs. Pairs
  /// that have no rank in common are measured at the same time. Nothing for the second of two ranks, whose pair is the
  /// first one's.
  [[nodiscard]] std::optional<core::Seconds> round_trip();

  /// Collective, in turn with read(): writes `bytes`, and returns once the right neighbour has done so too.
  void write(core::Bytes bytes);
  /// Local: brings what the right neighbour wrote, all its lines, to this core: the fastest way, by one load a line.
  void read();

 private:
  struct Board;
  [[nodiscard]] Board& board(int rank) const noexcept;
  [[nodiscard]] std::byte* data(int rank) const noexcept;
  [[nodiscard]] core::Seconds lead();
  void follow();
  template <class Reached>
  void await(Reached reached);

  std::unique_ptr<Transport> node_;
  std::unique_ptr<SharedSegment> segment_;
  int right_ = 0;
  int left_ = 0;
  std::uint64_t n_led_ = 0;
  std::uint64_t n_followed_ = 0;
  std::uint64_t n_written_ = 0;
  std::size_t bytes_ = 0;      ///< of the last write()
  std::uint64_t checked_ = 0;  ///< what read() found, so that no compiler leaves out the loads
};

}  // namespace lockstep::comm

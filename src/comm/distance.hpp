// The distance between the cores of a node's ranks: the round trip of a cache line, and the time to read another core's
// data.
// Invariant: loads and stores in shared memory only; a look takes a millisecond; ranks that share cores yield them.
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

  /// Whether this rank's node has other ranks; if not, the functions below do nothing.
  [[nodiscard]] bool has_neighbour() const noexcept { return node_->n_ranks() > 1; }

  /// Collective: the round trip of a cache line between this rank and its right neighbour, as the lower quartile of
  /// short runs, because other work only lengthens them. Pairs without a common rank are measured at the same time. The
  /// second of two ranks gets nothing, because their pair is the first one's.
  [[nodiscard]] std::optional<core::Seconds> round_trip();

  /// Collective, in turn with read(): writes `bytes`, and returns once the right neighbour has also done so.
  void write(core::Bytes bytes);
  /// Local: brings all lines that the right neighbour wrote to this core, by one load each, the fastest way.
  void read();

 private:
  struct Board;
  [[nodiscard]] Board& board(int rank) const noexcept;
  [[nodiscard]] std::byte* data(int rank) const noexcept;
  [[nodiscard]] core::Seconds lead();
  void follow();

  std::unique_ptr<Transport> node_;
  std::unique_ptr<SharedSegment> segment_;
  int right_ = 0;
  int left_ = 0;
  std::uint64_t n_led_ = 0;
  std::uint64_t n_followed_ = 0;
  std::uint64_t n_written_ = 0;
  std::size_t bytes_ = 0;      ///< of the last write()
  std::uint64_t checked_ = 0;  ///< from read(), so that no compiler omits the loads
};

}  // namespace lockstep::comm

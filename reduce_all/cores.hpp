// Watches the distance between the ranks' cores, which the host of a virtual machine changes during a run.
// Invariant: all ranks get the same result; a change counts only if a second look confirms it.
// Used by run (header), the sweep (rows measured while cores moved are measured again) and the limit.
#pragma once

#include <optional>
#include <vector>

#include "comm/distance.hpp"
#include "reduce_all/progress.hpp"
#include "runtime/communicator.hpp"

namespace lockstep::reduce_all {

/// Round trips of a cache line between neighbours of a node, over all pairs that were measured.
struct CoreDistance {
  double nearest_ns = 0;
  double median_ns = 0;
  double farthest_ns = 0;
};

/// For the header: the distance, and how fast all ranks at once read what their neighbours just wrote.
struct CoreReach {
  CoreDistance round_trip;
  core::Bytes read;
  double read_GBps = 0;  ///< of the slowest rank
};

/// A larger factor means another distance. Cores of one cache, of two caches and of two sockets differ by 2 and more;
/// repeated looks at cores that stay differ by a few percent.
inline constexpr double another_distance = 1.5;

/// All members are collective, except those marked local.
class CoreWatch {
 public:
  /// Off if no two ranks are on a node, if ranks share cores, if vectors are not in host memory, or without room for
  /// shared memory.
  CoreWatch(const runtime::Communicator& world, comm::Transport& transport, bool oversubscribed, Progress& progress,
            bool is_on_host = true);

  /// Local; the same on all ranks.
  [[nodiscard]] bool is_on() const noexcept { return probe_.has_value(); }
  /// Local: why it is off, in words; empty if it is on or there is one rank.
  [[nodiscard]] const char* why_off() const noexcept { return why_off_; }
  /// Local: the probe for reading what another rank wrote. Null unless it is on.
  [[nodiscard]] comm::CoreProbe& probe() { return *probe_; }
  /// Local: the most that one rank writes and another reads.
  [[nodiscard]] core::Bytes largest_read() const noexcept { return largest_read_; }

  /// Looks, and takes the result as the reference distance.
  void settle();
  /// Looks again: returns true on all ranks if the distance of a pair has changed since settle(); then always true,
  /// without looking.
  bool have_moved();

  /// Local: whether have_moved() was true since settle().
  [[nodiscard]] bool has_moved() const noexcept { return has_moved_; }
  /// For rank 0 only. Nothing unless it is on.
  [[nodiscard]] std::optional<CoreReach> reach();

  /// The distance at settle(), at the last look, and the shortest of each pair since settle(); for rank 0 only.
  [[nodiscard]] CoreDistance at_first() const;
  [[nodiscard]] CoreDistance at_last() const;
  [[nodiscard]] CoreDistance shortest() const;

 private:
  void look();
  [[nodiscard]] bool is_elsewhere() const;
  [[nodiscard]] CoreDistance over_pairs(double mine_ns) const;

  const runtime::Communicator& world_;
  Progress& progress_;
  core::Bytes largest_read_;
  std::optional<comm::CoreProbe> probe_;
  const char* why_off_ = "";
  bool has_moved_ = false;
  // Round trips of this rank's pair; 0 if it does not lead one.
  double first_ns_ = 0;
  double last_ns_ = 0;
  double shortest_ns_ = 0;
};

}  // namespace lockstep::reduce_all

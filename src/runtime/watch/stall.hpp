// Who is to blame for a stall: reads the board, weighs the evidence, words the report.
// Invariant: evidence (gone, stopped, silent, unread) comes before inference (furthest behind, or waiting for nobody).
// Used by watchdog.cpp.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "runtime/watch/board.hpp"
#include "runtime/watch/watchdog.hpp"

namespace lockstep::runtime {

enum class Condition {
  absent,   ///< its slot was never taken
  gone,     ///< ended without leaving the board in order
  stopped,  ///< by a signal or a debugger
  silent,   ///< exists, but its watchdog thread gives no sign of life
  unread,   ///< alive, and its stdout or stderr is full, because nobody reads it
  waiting,  ///< alive, and makes no progress
  moving,   ///< alive, and has made progress within the timeout
  left      ///< has left normally
};

/// One process.
struct Finding {
  Condition condition = Condition::absent;
  std::string host{};
  int slot = 0;  ///< on its node
  int rank = -1;
  ProcessKey process = 0;
  Activity phase = Activity::init;
  std::uint64_t position = 0;
  std::uint64_t unit = 0;
  Wait wait = Wait::nothing;
  std::uint32_t wait_number = 0;
};

/// The reporting process and its circumstances.
struct Witness {
  std::string host;
  core::Seconds timeout;
  Activity phase = Activity::init;
  bool has_other_nodes = false;
  int n_ranks = 0;  ///< of the job; 0: unknown
};

/// For how long processes of the board have given no sign of life. Time in which this process was stopped does not
/// count.
class Silence {
 public:
  /// Called at every tick, `gap_ns` after the last one.
  void look(std::span<const BoardSlot> slots, std::int64_t gap_ns);
  [[nodiscard]] std::int64_t longest_ns() const noexcept { return longest_ns_; }

 private:
  struct Heard {
    std::int64_t alive_ns = 0;
    std::int64_t silence_ns = 0;
  };
  std::vector<Heard> heard_{};  ///< of each taken slot
  std::int64_t longest_ns_ = 0;
};

/// Returns the time between two signs of life of each of so many processes of a node. It is longer for many processes,
/// which would disturb one another: 256 ranks on 2 cores that wake every 500 ms end after 78 s instead of 52.
[[nodiscard]] constexpr std::chrono::milliseconds sign_of_life_interval(int n_local_ranks) noexcept {
  return std::chrono::milliseconds{50} * std::clamp(n_local_ranks / 8, 1, 40);
}

/// Reads what process number `index` of its node reports about itself.
[[nodiscard]] Finding read_slot(const BoardSlot& slot, Condition condition, const std::string& host, int index);

/// "phase evaluation, batch 12", "phase training, step 40, all-reduce bucket 3".
[[nodiscard]] std::string describe_place(const Finding& finding);

/// Returns a finding for every process of the board of `host`, and for those that should be on it; `now_ns` is a time
/// of CLOCK_MONOTONIC.
[[nodiscard]] std::vector<Finding> inspect(const Board& board, const std::string& host, std::int64_t now_ns,
                                           core::Seconds timeout);

/// Returns the host whose process speaks for all: that of a process to blame, or else the first.
[[nodiscard]] std::string find_speaker(const std::vector<Finding>& findings);

/// Whether some process is known to be unable to continue.
[[nodiscard]] bool has_evidence(const std::vector<Finding>& findings) noexcept;

/// `findings` are of this node. Marks as unread those that are waiting and whose output nobody reads.
void find_unread_output(std::vector<Finding>& findings);

/// The whole report, each line with its newline.
[[nodiscard]] std::string describe_stall(const std::vector<Finding>& findings, const Witness& witness);
/// The report of this process, if it has no board, and so knows of no other.
[[nodiscard]] std::string describe_alone(const Finding& mine, core::Seconds timeout);

}  // namespace lockstep::runtime

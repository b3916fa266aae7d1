// The watchdog's board: memory shared by the processes of a job on one node, one slot each.
// Invariant: lock-free; a slot is written by its owner only; a process is known by pid and start time, never by pid
// alone.
// Used by watchdog.cpp and stall.cpp.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "runtime/launcher.hpp"
#include "runtime/process.hpp"

namespace lockstep::runtime {

/// A process by its pid and the lower half of its start time; 0 is nobody.
using ProcessKey = std::uint64_t;

[[nodiscard]] ProcessKey make_process_key(pid_t pid, std::uint64_t start_time) noexcept;
[[nodiscard]] pid_t pid_of(ProcessKey key) noexcept;

/// A process's report to the others. All zero is a free slot; times are nanoseconds on CLOCK_MONOTONIC.
struct alignas(128) BoardSlot {
  std::atomic<ProcessKey> owner;
  std::atomic<std::uint64_t> position;  ///< enter() calls in the upper half, beats since the last one in the lower
  std::atomic<std::int64_t> alive_ns;   ///< last sign of life of the watchdog thread
  std::atomic<std::int64_t> moved_ns;   ///< when that thread last saw `position` change, or the process left
  std::atomic<std::int32_t> rank;       ///< -1 while unknown
  std::atomic<std::uint32_t> phase;
  std::atomic<std::uint32_t> left;  ///< 1 once the process has left normally
  std::atomic<std::uint64_t> unit;  ///< current step or batch, counting from 1; 0: none
  std::atomic<std::uint64_t> wait;  ///< Wait in the upper half, its number in the lower
};
static_assert(sizeof(BoardSlot) == 128 && std::atomic<std::uint64_t>::is_always_lock_free);

/// Returns whether the owner of `slot` still exists, and its state; a process that has ended but was not collected does
/// not count.
[[nodiscard]] std::optional<ProcessStatus> find_owner(const BoardSlot& slot);

/// Sends `signal` to owners that are stopped and belong to this user; returns how many there were.
int signal_stopped(std::span<BoardSlot> slots, int signal);

/// A process's view of the board. If the launcher reports the number of processes, the file exists only from the first
/// process's arrival to the last one's, so a killed process leaves nothing behind. The next job of the same user
/// removes the file of a job that was killed during its start, once the file is a minute old.
class Board {
 public:
  /// Joins, or creates, the board of the job in `directory`; returns nothing without a launcher, or without such
  /// memory. Throws core::Error (system), in the first process of the node, if another user's file has its name.
  static std::unique_ptr<Board> join(const LauncherHint& hint, const std::string& directory = "/dev/shm");
  /// Leaves normally.
  ~Board();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  [[nodiscard]] BoardSlot& mine() const noexcept { return *mine_; }
  [[nodiscard]] std::span<BoardSlot> slots() const noexcept;
  /// Slots that must be taken; 0 if the launcher does not report the number.
  [[nodiscard]] int n_expected() const noexcept { return n_expected_; }

  /// Returns true for the first caller on the node.
  [[nodiscard]] bool claim_report() noexcept;
  /// Tells all others that the report is printed, and removes the file.
  void publish_report() noexcept;
  [[nodiscard]] bool is_report_out() const noexcept;

 private:
  struct Layout;
  Board(Layout* layout, std::string path, int n_expected) noexcept;

  static void remove_abandoned(const std::string& directory, const std::string& prefix);
  void clear_if_abandoned() noexcept;
  [[nodiscard]] bool take_slot(const LauncherHint& hint) noexcept;
  [[nodiscard]] bool is_complete() const;
  [[nodiscard]] bool is_anyone_here() const;
  void remove_file() noexcept;

  Layout* layout_;
  std::string path_;
  int n_expected_;
  BoardSlot* mine_ = nullptr;
};

}  // namespace lockstep::runtime

// The stall watchdog: detects that this process makes no progress, finds the culprit, and ends the process.
// Invariant: makes no MPI call and takes no lock that a stopped process could hold; exactly one process of a node
// reports.
// Used by the main() of both programs, from before MPI_Init to after MPI_Finalize.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/clock.hpp"
#include "core/units.hpp"
#include "runtime/fault.hpp"
#include "runtime/launcher.hpp"
#include "runtime/watch/wait.hpp"

namespace lockstep::runtime {

/// Enumerators equal the words of the messages and of --inject; `training` to `work` are those of `lockstep`. In `work`
/// no rank beats, so every living process counts as moving. `left`: MPI has ended.
enum class Activity : std::uint32_t {
  init,
  setup,
  warmup,
  timing,
  verification,
  finish,
  training,
  evaluation,
  save,
  work,
  left
};

[[nodiscard]] std::string_view name(Activity phase) noexcept;

/// Processes of a node share a board (a file in /dev/shm named after the job): slot i holds process i's phase, its
/// progress, and a sign of life that its watchdog thread writes. Progress is a call of beat() or enter() by the main
/// thread. Processor time is no progress, because ranks that wait spend it, too. A process without progress for
/// `timeout` reads the board. If no other process has progress, or if one has given no sign of life for `timeout`,
/// there is a stall. The first process to claim the report names those that are furthest behind, or wait for nobody
/// while others wait: rank, host, pid, phase, step or batch, and whether they are stopped, gone or only waiting. All
/// processes then leave with ExitCode::stalled (4). A process whose guard was killed reports that, and leaves with
/// ExitCode::system (3).
class Watchdog {
 public:
  /// Starts the thread. `timeout` 0 switches the watchdog off. `drill` is told each phase and unit as it begins; null
  /// without faults. `drill` and `clock` must outlive this.
  Watchdog(const LauncherHint& hint, core::Seconds timeout, Drill* drill = nullptr,
           const core::Clock& clock = core::real_clock());
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Sets the rank in MPI_COMM_WORLD, once known.
  void set_rank(int rank, int n_ranks) noexcept;
  /// Counts as progress, and forgets the unit. `allowance`: how much longer than the timeout all ranks may be without a
  /// beat in this phase, for example while they wait for a disk; about the same on all ranks.
  void enter(Activity phase, core::Seconds allowance = {});
  /// One step of progress; costs one relaxed store to a line no other process writes.
  void beat() noexcept;
  /// Sets the current unit of the phase, for the report: a step of training or a batch of evaluation, counting from 1.
  void set_unit(std::uint64_t unit);
  /// Sets, for the report, what this process waits for from now on, if anything.
  void set_wait(Wait what, std::size_t number = 0) noexcept;
  /// Whether this process is the first of its node to report why the job ends.
  [[nodiscard]] bool claim_last_word() noexcept;
  /// Sets a function that is called, in a separate thread and for at most a second, if this process reports a stall. It
  /// must not throw, nor use anything that this object may outlive.
  void set_on_stall(std::function<void(const std::string& report)> action);
  /// Sets a folder that all nodes see, for their findings; without one each node speaks for itself.
  void set_meeting_folder(std::string folder);
  /// Sets the text that this process writes to stdout if it must leave because of a stall. It also writes the text if
  /// it has not withdrawn it 0.7 s after a signal, because launchers do not wait for long. Replaces the previous text;
  /// has no effect once one is written, because a second one would contradict it.
  void set_last_words(std::string words);
  /// Returns the text; empty if it was already written.
  [[nodiscard]] std::string withdraw_last_words();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::runtime

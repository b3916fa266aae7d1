// Output of a launcher and its ranks, passed on by this program.
// Invariant: all output is taken, whether or not it can be passed on; the launcher notices only if stdout has no reader
// any more.
// Used by supervise.cpp.
#pragma once

#include <csignal>
#include <memory>
#include <optional>
#include <string_view>

#include "core/descriptor.hpp"

namespace lockstep::runtime {

struct Pipe {
  core::Descriptor from, to;
};

/// Returns nothing if none can be created: errno.
[[nodiscard]] std::optional<Pipe> make_pipe() noexcept;

/// Writes all of it, or as much as possible. Returns errno; 0: everything is written.
int write_all(int to, std::string_view text) noexcept;

/// Whether stdout has no reader any more, as in `reduce_all | head`: launchers take that for a failed job.
[[nodiscard]] bool has_lost_reader() noexcept;

/// Whether stdout and stderr accept output now, or never will again.
[[nodiscard]] bool takes_output() noexcept;

/// Pipes for a launcher, and threads that read them; if no pipes can be created, the launcher writes by itself.
class LauncherOutput {
 public:
  /// `shows_launcher`: also the launcher's own messages about a failed job, which are left out otherwise.
  explicit LauncherOutput(bool shows_launcher);
  ~LauncherOutput();
  LauncherOutput(const LauncherOutput&) = delete;
  LauncherOutput& operator=(const LauncherOutput&) = delete;

  /// In the process that becomes the launcher: makes the pipes its stdout and stderr.
  void take_places() const noexcept;

  /// In this process, once the launcher exists.
  void begin();

  /// Once the launcher has ended: waits until its remaining output is passed on. The reader of stdout may take any
  /// time, so one of the signals `awaited`, which are blocked (except SIGCHLD), ends the wait and is returned; 0: none
  /// came. Stderr, which nobody has to read, gets one second.
  [[nodiscard]] int await_end(const sigset_t& awaited);

  /// Whether nothing was written at all, as far as that is known.
  [[nodiscard]] bool is_silent() const noexcept;

  /// Why stdout could not be written: errno; 0: it could, or has no reader any more.
  [[nodiscard]] int stdout_error() const noexcept;

 private:
  class Relay;
  std::unique_ptr<Relay> out_, err_;
};

}  // namespace lockstep::runtime

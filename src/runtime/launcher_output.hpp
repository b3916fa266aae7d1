// What a launcher and its ranks write, passed on by this program.
// Invariant: all that comes is taken, whether or not it can be passed on; only where nobody reads stdout any more, the
// launcher learns so.
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

/// Nothing if there is none to be had: errno.
[[nodiscard]] std::optional<Pipe> make_pipe() noexcept;

/// Writes all of it, or what can be written. Returns errno; 0: it is all written.
int write_all(int to, std::string_view text) noexcept;

/// Whether nobody reads stdout any more, as of `reduce_all | head`: launchers take that for a failed job.
[[nodiscard]] bool has_lost_reader() noexcept;

/// Whether stdout and stderr take something now, or never will.
[[nodiscard]] bool takes_output() noexcept;

/// Pipes for a launcher, and threads that read them; where there are no pipes to be had, it writes by itself.
class LauncherOutput {
 public:
  /// `shows_launcher`: its own words about a job that failed, too, which are left out otherwise.
  explicit LauncherOutput(bool shows_launcher);
  ~LauncherOutput();
  LauncherOutput(const LauncherOutput&) = delete;
  LauncherOutput& operator=(const LauncherOutput&) = delete;

  /// In the process that is to become the launcher: they become its stdout and stderr.
  void take_places() const noexcept;

  /// In this process, once that one is there.
  void begin();

  /// Once the launcher has ended: until what it left is passed on. That may take any time, as whoever reads stdout
  /// does; so one of the signals `awaited`, which are blocked, but for SIGCHLD, ends the wait, and is returned; 0: none
  /// came. Stderr, which nobody has to read, has a second.
  [[nodiscard]] int await_end(const sigset_t& awaited);

  /// Whether nothing has come at all, as far as that is known.
  [[nodiscard]] bool is_silent() const noexcept;

  /// Why something could not be written to stdout: errno; 0: it could, or nobody reads it any more.
  [[nodiscard]] int stdout_error() const noexcept;

 private:
  class Relay;
  std::unique_ptr<Relay> out_, err_;
};

}  // namespace lockstep::runtime

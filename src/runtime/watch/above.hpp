// The processes above a rank that its job needs: its guard, which reports how the rank ends, and its launcher.
// Invariant: makes no MPI call; a process is known by pid and start time.
// Used by watchdog.cpp.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/launcher.hpp"

namespace lockstep::runtime {

class Above {
 public:
  /// `guard`: 0 if there is none. Watches the launcher if find_launcher() knows it.
  Above(const LauncherHint& hint, pid_t guard);

  /// Called at every tick; checks at every second one. `gap_ns` is the time since the last tick, without time in which
  /// this process itself was stopped.
  void look(std::int64_t gap_ns);
  /// Whether the guard has died, as by SIGKILL.
  [[nodiscard]] bool has_lost_guard() const noexcept;
  /// For how long one of them has been stopped; 0: none is stopped.
  [[nodiscard]] std::int64_t longest_stop_ns() const noexcept;
  /// The stopped ones, a line each: "  guard of rank 1 on node7 (pid 4711): stopped by a signal (state T)".
  [[nodiscard]] std::string describe_stopped(int rank) const;
  /// "error: rank 1 on node7 (pid 4712) ends, in phase save: its guard (pid 4711) was killed", with its newline.
  [[nodiscard]] std::string describe_lost_guard(int rank, std::string_view phase) const;
  /// Those that are stopped go on.
  void wake() const noexcept;

 private:
  struct Watched {
    bool is_guard = false;
    pid_t process = 0;
    std::uint64_t start_time = 0;
    bool is_stopped = false;
    std::int64_t stopped_ns = 0;
  };
  void watch(pid_t process, bool is_guard);

  pid_t guard_;
  std::vector<Watched> watched_{};
  int n_ticks_ = 0;
  std::int64_t since_look_ns_ = 0;
};

}  // namespace lockstep::runtime

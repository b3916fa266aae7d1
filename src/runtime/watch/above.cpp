#include "runtime/watch/above.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "runtime/process.hpp"
#include "runtime/session.hpp"
#include "runtime/watch/lingering.hpp"

namespace lockstep::runtime {
namespace {

constexpr int ticks_per_look = 2;

}  // namespace

Above::Above(const LauncherHint& hint, pid_t guard) : guard_{guard} {
  if (guard != 0) watch(guard, true);
  if (const auto launcher = find_launcher(hint)) watch(launcher->process, false);
}

void Above::watch(pid_t process, bool is_guard) {
  if (const auto status = read_process(process))
    watched_.push_back({.is_guard = is_guard, .process = process, .start_time = status->start_time});
}

void Above::look(std::int64_t gap_ns) {
  since_look_ns_ += gap_ns;
  if (++n_ticks_ % ticks_per_look != 0) return;
  for (Watched& one : watched_) {
    const auto status = read_process(one.process);
    const bool is_stopped = status && status->start_time == one.start_time && is_standing_still(status->state);
    one.stopped_ns = is_stopped ? one.stopped_ns + since_look_ns_ : 0;
    one.is_stopped = is_stopped;
  }
  since_look_ns_ = 0;
}

bool Above::has_lost_guard() const noexcept { return guard_ != 0 && getppid() != guard_; }

std::int64_t Above::longest_stop_ns() const noexcept {
  std::int64_t longest = 0;
  for (const Watched& one : watched_) longest = std::max(longest, one.stopped_ns);
  return longest;
}

std::string Above::describe_stopped(int rank) const {
  std::string text;
  for (const Watched& one : watched_)
    if (one.is_stopped)
      text += fmt::format("  {} on {} (pid {}): stopped by a signal (state T)\n",
                          !one.is_guard ? "MPI launcher"
                          : rank >= 0   ? fmt::format("guard of rank {}", rank)
                                        : "guard",
                          host_name(), one.process);
  return text;
}

std::string Above::describe_lost_guard(int rank, std::string_view phase) const {
  return fmt::format("error: {}{} (pid {}) ends, in phase {}: its guard (pid {}) was killed\n",
                     rank >= 0 ? fmt::format("rank {} on ", rank) : "", host_name(), getpid(), phase, guard_);
}

void Above::wake() const noexcept {
  for (const Watched& one : watched_)
    if (one.is_stopped) kill(one.process, SIGCONT);
}

}  // namespace lockstep::runtime

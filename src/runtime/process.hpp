// Facts from /proc about a process of this node.
// Invariant: every question about a process that is gone is answered by "nothing".
// Used by launcher.cpp, supervise.cpp, and the watchdog.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/descriptor.hpp"

namespace lockstep::runtime {

/// From /proc/<pid>/stat.
struct ProcessStatus {
  char state = '?';  ///< 'R', 'S', 'D', 'T' (stopped), 't' (traced), 'Z' (ended, not yet collected), ...
  pid_t parent = 0;
  std::uint64_t start_time = 0;  ///< clock ticks since boot; with the pid it identifies a process uniquely
};

[[nodiscard]] std::optional<ProcessStatus> read_process(pid_t pid);

/// Whether a signal or a debugger has stopped it.
[[nodiscard]] constexpr bool is_standing_still(char state) noexcept { return state == 'T' || state == 't'; }

/// Whether `variable` was in the environment the process was started with; false if that cannot be read.
[[nodiscard]] bool was_started_with(pid_t pid, std::string_view variable);

/// Returns "mpirun", at most 15 characters; empty if there is no such process.
[[nodiscard]] std::string name_of_process(pid_t pid);

[[nodiscard]] bool is_of_this_user(pid_t pid);

/// Whether it has a child that has not ended.
[[nodiscard]] bool has_living_child(pid_t pid);

/// Opens stdout (1) or stderr (2) of another process for writing without waiting; none if that is not possible.
[[nodiscard]] core::Descriptor open_output_of(pid_t pid, int place);

/// Whether its stdout or stderr is full, because whoever should read it does not.
[[nodiscard]] bool has_unread_output(pid_t pid);

/// A process below this one.
struct Descendant {
  pid_t process = 0;
  bool is_ours = false;  ///< this program: a rank, or the guard of one
  bool is_stopped = false;
};

/// All descendants of a process, except those below the processes that `but` names.
[[nodiscard]] std::vector<Descendant> find_descendants(const std::vector<pid_t>& but);

}  // namespace lockstep::runtime

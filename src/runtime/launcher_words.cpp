#include "runtime/launcher_words.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep::runtime {
namespace {

/// Parts of lines of Open MPI 4 and 5 and of MPICH's Hydra.
constexpr std::array<std::string_view, 34> known_parts{
    // A rank that left with an exit code.
    "Primary job  terminated normally, but",
    "a non-zero exit code. Per user-direction, the job has been aborted.",
    "detected that one or more processes exited with non-zero status,",
    "the job to be terminated. The first process to do so was:",
    "  Process name: [",
    "  Exit code:    ",
    // A rank that called MPI_Abort.
    "MPI_ABORT was invoked on rank",
    "  Proc: [[",
    "  Errorcode: ",
    "with errorcode ",
    "NOTE: invoking MPI_ABORT causes Open MPI to kill all MPI processes.",
    "You may or may not see output from other processes, depending on",
    "exactly when Open MPI kills them.",
    "has exited due to process rank",
    "\"abort\". This may have caused other processes in the application to be",
    "terminated by signals sent by",
    "application called MPI_Abort(",
    // Several of them.
    "processes have sent help message help-mpi-api.txt / mpi-abort",
    "process has sent help message help-mpi-api.txt / mpi-abort",
    "Set MCA parameter \"orte_base_help_aggregate\" to 0 to see all help / error messages",
    "PMIX ERROR: PMIX_ERR_UNREACH in file ../../../src/server/pmix_server.c",
    "[warn] Epoll MOD(",
    "ORTE_ERROR_LOG: Data unpack would read past end of buffer in file ../../../orte/util/show_help.c",
    // A signal; SIGUSR1 is how --nproc asks for an end.
    "exited on signal 10 (User defined signal 1)",
    ": Forwarding signal ",
    "Sending Ctrl-C to processes as requested",
    "Press Ctrl-C again to force abort",
    // Nobody reads its stdout.
    "SIGPIPE detected ",
    "abort is already in progress...hit ctrl-c again to forcibly terminate",
    // Hydra.
    "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
    "=   PID ",
    "=   EXIT CODE: ",
    "=   CLEANING UP REMAINING PROCESSES",
    "=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES",
};

/// Our own messages begin so, and may name anything.
bool is_own_message(std::string_view line) {
  constexpr std::array<std::string_view, 4> begins{"error: ", "warning: ", "  expected: ", "  fix: "};
  return std::ranges::any_of(begins, [line](std::string_view begin) { return line.starts_with(begin); });
}

bool is_known(std::string_view line) {
  return !is_own_message(line) &&
         std::ranges::any_of(known_parts, [line](std::string_view part) { return line.find(part) != line.npos; });
}

bool is_rule(std::string_view line) {
  constexpr std::size_t shortest = 70;
  return line.size() >= shortest && (line.front() == '-' || line.front() == '=') &&
         line.find_first_not_of(line.front()) == line.npos;
}

}  // namespace

std::string LauncherWords::pass(std::string_view text) {
  std::string shown;
  for (const char c : text) {
    line_ += c;
    if (c == '\n') shown += take(std::exchange(line_, {}));
    if (c == '\r' && frame_.empty()) shown += std::exchange(line_, {});
  }
  return shown;
}

std::string LauncherWords::release() { return end_frame() + std::exchange(line_, {}); }

std::string LauncherWords::take(const std::string& line) {
  const std::string_view words = std::string_view{line}.substr(0, line.size() - 1);
  if (is_rule(words)) {
    if (frame_.empty()) {
      frame_ = line;
      return {};
    }
    frame_ += line;
    return end_frame();
  }
  const bool is_left_out = is_known(words);
  if (frame_.empty()) return is_left_out ? std::string{} : line;
  frame_ += line;
  has_known_ = has_known_ || is_left_out;
  if (!is_left_out && !words.empty()) rest_ += line;
  return {};
}

std::string LauncherWords::end_frame() {
  std::string whole = std::exchange(frame_, {}), rest = std::exchange(rest_, {});
  return std::exchange(has_known_, false) ? rest : whole;
}

}  // namespace lockstep::runtime

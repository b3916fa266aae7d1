// Errors: what went wrong, where, what was expected, how to fix it, and the resulting exit code.
// Invariant: nothing in core prints or exits; a failure travels as an Error until a main() reports it once.
// Used by every folder.
#pragma once

#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace lockstep::core {

/// Process exit codes shared by all programs.
enum class ExitCode : int {
  ok = 0,
  failed = 1,   ///< a verification or regression failed
  usage = 2,    ///< wrong usage or bad input, found before work started
  system = 3,   ///< the system or MPI failed
  stalled = 4,  ///< the watchdog ended a hang
  requeue = 85  ///< state saved, run me again
};

[[nodiscard]] constexpr int to_int(ExitCode code) noexcept { return static_cast<int>(code); }

/// One failure in the words that a user needs. The message omits empty fields.
struct Problem {
  std::string what{};      ///< "unknown algorithm 'rnig'"
  std::string where{};     ///< flag, file, key or rank: "--algorithm"
  std::string expected{};  ///< "one of mpi, ring, shm"
  std::string fix{};       ///< "did you mean 'ring'?"
};

/// Where in the source a check is: as a default argument, the caller's file, line and function. A substitute for
/// `std::source_location`, which Clang 14 (and so clang-tidy 14) lacks on libstdc++ 12.
struct SourceLocation {
  const char* file = "";
  int line = 0;
  const char* function = "";

  static constexpr SourceLocation current(const char* file = __builtin_FILE(), int line = __builtin_LINE(),
                                          const char* function = __builtin_FUNCTION()) noexcept {
    return {file, line, function};
  }
};

/// The only exception type Lockstep throws on purpose.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, Problem problem, SourceLocation location = SourceLocation::current());

  [[nodiscard]] ExitCode code() const noexcept { return code_; }
  [[nodiscard]] const Problem& problem() const noexcept { return problem_; }
  /// Where it was thrown; useful for `system` errors only, so not part of what().
  [[nodiscard]] const SourceLocation& location() const noexcept { return location_; }

 private:
  ExitCode code_;
  Problem problem_;
  SourceLocation location_;
};

/// The message for a user, one field per line: what, where, expected, fix. Shows control characters, which names of
/// files may contain, as \xNN.
[[nodiscard]] std::string describe(const Problem& problem);

/// Returns the Error that `step` throws, so that ranks can agree on one; nothing if it succeeds.
template <class Step>
[[nodiscard]] std::optional<Error> complaint_of(Step step) {
  try {
    step();
    return std::nullopt;
  } catch (const Error& error) {
    return error;
  }
}

/// Returns what `step` throws; exceptions that are no Error become one with ExitCode::system.
template <class Step>
[[nodiscard]] std::optional<Error> failure_of(Step step) {
  try {
    return complaint_of(std::move(step));
  } catch (const std::exception& error) {
    return Error{ExitCode::system, {.what = error.what()}};
  }
}

/// Throws an Error with ExitCode::usage.
[[noreturn]] void fail_usage(Problem problem, SourceLocation location = SourceLocation::current());

/// Throws an Error with ExitCode::system; `what` should name the operation.
[[noreturn]] void fail_system(const std::string& what, SourceLocation location = SourceLocation::current());

/// The system's words for an error number: "No such file or directory".
[[nodiscard]] std::string system_reason(int error);

/// Throws an Error with ExitCode::system that names the place in the source.
[[noreturn]] void fail_promise(const char* promise, SourceLocation location);

/// Checks a promise between two parts of Lockstep: a violation is a defect of Lockstep, reported as ExitCode::system.
inline void require(bool holds, const char* promise, SourceLocation location = SourceLocation::current()) {
  if (!holds) [[unlikely]]
    fail_promise(promise, location);
}

}  // namespace lockstep::core

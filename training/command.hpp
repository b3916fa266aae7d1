// A parsed command line of lockstep: what to print, what to refuse, or what to run.
// Invariant: pure, makes no MPI call; the same arguments give the same Invocation on every rank.
// Used by main(); each command has a row in the table of command.cpp.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/flags.hpp"
#include "runtime/fault.hpp"
#include "runtime/jobs.hpp"
#include "runtime/launcher.hpp"
#include "runtime/session.hpp"
#include "runtime/watch/watchdog.hpp"

namespace lockstep::training {

/// Collective: does the work and returns the exit code. The watchdog is in Activity::work.
using Work = std::function<int(const runtime::Session&, runtime::Watchdog&)>;

/// The result of parsing a verb's flags.
struct Action {
  std::function<void()> check{};  ///< after parsing, without MPI: throws core::Error (usage); may be empty
  std::function<int(const runtime::Session&)> run{};  ///< as Work, but without a watchdog of its own
  std::shared_ptr<runtime::Drill> drill{};            ///< for verbs that take --inject: filled by parsing
};

/// Exactly one of text, error and run is set.
struct Invocation {
  std::string text{};  ///< to print, such as --help
  std::optional<core::Error> error{};
  Work run{};
  /// Replaces run if there is no launcher: starts jobs, and is not one itself.
  std::function<int(runtime::JobRunner&)> supervise{};
  /// On the first rank if a launcher has started ranks: reports what a failing MPI could keep from being reported.
  std::function<void()> before_mpi{};
  int nproc = 0;               ///< ranks to start; 0: not given
  int expect_ranks = 0;        ///< the required number of ranks; 0: not given
  bool assumes_ranks = false;  ///< a process that is alone plans for expect_ranks, and needs no others
  int threads = 0;             ///< of each rank; 0: not given
  bool verbose = false;        ///< with nproc: prints the launcher's own messages, too
  core::Seconds timeout{300};  ///< of the stall watchdog; 0: off
  bool is_resumable = false;   ///< as in LaunchOptions
  bool judges_launch = false;  ///< also runs if processes that were started together are alone, and reports that
  std::shared_ptr<runtime::Drill> drill{};  ///< of --inject; else null
  bool is_guarded_alone = false;            ///< leaves a guard behind, which must report how the program ended
  runtime::Alone alone = runtime::Alone::with_mpi;
};

/// `arguments` as typed, without the program's name. Does not throw for user input.
[[nodiscard]] Invocation parse_command_line(const std::vector<std::string>& arguments);

/// Collective: runs `invocation`; returns the exit code, the same on all ranks. `hint`: how the ranks were launched.
[[nodiscard]] int run_on_ranks(const runtime::Session& session, const Invocation& invocation,
                               const runtime::LauncherHint& hint, runtime::Watchdog& watchdog);

/// Whether one of `arguments` asks for help.
[[nodiscard]] bool asks_for_help(const std::vector<std::string>& arguments);

/// The flags of all commands with ranks: --nproc, --expect-ranks, --timeout and --verbose.
void declare_launch(core::Flags& flags, Invocation& invocation);

/// Parses `arguments` with the flags that `declare` declares, and those of declare_launch(). `usage` as in Flags.
/// Throws core::Error (usage).
[[nodiscard]] Invocation make_invocation(const std::string& usage, Action (*declare)(core::Flags&),
                                         const std::vector<std::string>& arguments);

}  // namespace lockstep::training

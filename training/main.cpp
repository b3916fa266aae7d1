// lockstep: the second program. From the command line to the exit code; each command has its own folder.
#include <fmt/format.h>

#include <csignal>
#include <exception>
#include <optional>
#include <string>

#include "core/log.hpp"
#include "core/print.hpp"
#include "runtime/interrupt.hpp"
#include "runtime/jobs.hpp"
#include "runtime/launcher.hpp"
#include "runtime/session.hpp"
#include "runtime/watch/guard.hpp"
#include "runtime/watch/watchdog.hpp"
#include "training/command.hpp"

namespace {

using namespace lockstep;
using training::Invocation;

// Does everything that needs no MPI, if there is no launcher. Returns nothing if MPI is needed.
std::optional<int> run_without_mpi(const Invocation& invocation, int argc, char** argv) {
  if (invocation.error) {
    core::log_error(invocation.error->what());
    return core::to_int(invocation.error->code());
  }
  if (!invocation.text.empty()) {
    core::print(invocation.text);
    return core::to_int(core::ExitCode::ok);
  }
  if (invocation.supervise) {
    runtime::Jobs jobs;
    return invocation.supervise(jobs);
  }
  if (invocation.nproc > 0)
    runtime::relaunch_under_mpi(invocation.nproc, argc, argv,
                                {.n_threads = invocation.threads,
                                 .timeout = invocation.timeout,
                                 .shows_launcher = invocation.verbose,
                                 .is_resumable = invocation.is_resumable});
  return std::nullopt;
}

int run_in_session(const Invocation& invocation, const runtime::LauncherHint& hint) {
  runtime::Watchdog watchdog{hint, invocation.timeout, invocation.drill.get()};
  std::optional<runtime::Session> session;  // outlives the try: on an error its end would wait for the other ranks
  try {
    watchdog.enter(runtime::Activity::init);
    session.emplace(invocation.alone);
    watchdog.set_rank(session->world().rank(), session->world().n_ranks());
    runtime::catch_interrupts();
    const int exit_code = training::run_on_ranks(*session, invocation, hint, watchdog);
    watchdog.enter(runtime::Activity::finish);
    session.reset();
    watchdog.enter(runtime::Activity::left);
    if (invocation.drill && exit_code != core::to_int(core::ExitCode::usage))
      for (const std::string& fault : invocation.drill->unreached())
        core::log_warning(fmt::format("never injected: {}", fault));
    return exit_code;
  } catch (const std::exception&) {
    runtime::abort_job(runtime::current_error(), session ? "work" : "start", watchdog.claim_last_word());
  }
}

}  // namespace

int main(int argc, char** argv) {
  core::keep_standard_places();
  std::signal(SIGXFSZ, SIG_IGN);  // a limit of file sizes is an error of the write that meets it
  const Invocation invocation = training::parse_command_line({argv + 1, argv + argc});
  const runtime::LauncherHint hint = runtime::read_launcher_hint();
  try {
    if (hint.name.empty()) {
      if (const auto exit_code = run_without_mpi(invocation, argc, argv)) return *exit_code;
    }
    if (invocation.before_mpi && !hint.name.empty() && hint.rank.value_or(0) == 0) invocation.before_mpi();
    runtime::guard_rank(hint, invocation.timeout, invocation.is_guarded_alone);
    const int exit_code = run_in_session(invocation, hint);
    runtime::wake_guard();
    return exit_code;
  } catch (const core::Error& error) {
    core::log_error(error.what());
    return core::to_int(error.code());
  }
}

// reduce_all: the benchmark. From the command line to the exit code; each step has its own file.
#include <csignal>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/print.hpp"
#include "reduce_all/gate.hpp"
#include "reduce_all/options.hpp"
#include "reduce_all/progress.hpp"
#include "reduce_all/run.hpp"
#include "reduce_all/texts.hpp"
#include "runtime/launcher.hpp"
#include "runtime/session.hpp"
#include "runtime/watch/guard.hpp"
#include "runtime/watch/watchdog.hpp"

namespace {

using namespace lockstep;

// Does what needs no MPI without a launcher: texts, bad arguments, starting ranks. Returns nothing if MPI is needed.
std::optional<int> run_without_mpi(const reduce_all::CommandLine& line, int argc, char** argv) {
  if (line.error) {
    core::log_error(line.error->what());
    return core::to_int(line.error->code());
  }
  const std::string text = reduce_all::text_for(line.options.task);
  if (!text.empty()) {
    core::print(text);
    return core::to_int(core::ExitCode::ok);
  }
  if (line.options.task == reduce_all::Task::compare) return core::to_int(reduce_all::compare_files(line.options));
  if (line.options.nproc > 0)
    runtime::relaunch_under_mpi(line.options.nproc, argc, argv,
                                {.timeout = line.options.timeout, .shows_launcher = line.options.verbose});
  return std::nullopt;
}

int run_with_mpi(const reduce_all::CommandLine& line, const runtime::LauncherHint& hint) {
  runtime::Watchdog watchdog{hint, line.options.timeout, line.options.drill.get()};
  reduce_all::Progress progress{watchdog, line.options.drill.get()};
  std::optional<runtime::Session> session;  // outlives the try: on an error its end would wait for the other ranks
  try {
    progress.enter(runtime::Activity::init);
    session.emplace();
    watchdog.set_rank(session->world().rank(), session->world().n_ranks());
    const int exit_code = reduce_all::run(*session, line, hint, progress);
    session.reset();
    progress.enter(runtime::Activity::left);
    return exit_code;
  } catch (const std::exception&) {
    runtime::abort_job(runtime::current_error(), runtime::name(progress.phase()), watchdog.claim_last_word());
  }
}

}  // namespace

int main(int argc, char** argv) {
  core::keep_standard_places();
  std::signal(SIGXFSZ, SIG_IGN);  // a limit of file sizes is an error of the write that meets it
  const reduce_all::CommandLine line = reduce_all::parse_command_line({argv + 1, argv + argc});
  const runtime::LauncherHint hint = runtime::read_launcher_hint();
  try {
    if (hint.name.empty()) {
      if (const auto exit_code = run_without_mpi(line, argc, argv)) return *exit_code;
    }
    runtime::guard_rank(hint, line.options.timeout, true);
    const int exit_code = run_with_mpi(line, hint);
    runtime::wake_guard();
    return exit_code;
  } catch (const core::Error& error) {
    core::log_error(error.what());
    return core::to_int(error.code());
  }
}

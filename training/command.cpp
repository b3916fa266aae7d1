#include "training/command.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "core/instruction_sets.hpp"
#include "core/log.hpp"
#include "core/print.hpp"
#include "core/suggest.hpp"
#include "core/version.hpp"
#include "training/ckpt/verbs.hpp"
#include "training/doctor/doctor.hpp"
#include "training/lint/lint.hpp"
#include "training/shard/verbs.hpp"
#include "training/train.hpp"

namespace lockstep::training {
namespace {

struct Command {
  std::string_view name;
  std::string_view summary;
  Invocation (*parse)(const std::vector<std::string>& arguments);  ///< without the command's name
};

constexpr std::array<Command, 5> commands{{
    {"train", "train a model from a recipe, data-parallel", parse_train},
    {"shard", "make, check, change and measure data sets of HDF5 shards", shard::parse},
    {"ckpt", "list, check, compare, export and remove checkpoints", ckpt::parse},
    {"doctor", "check what would stop a job or make it slow", doctor::parse},
    {"lint", "check job scripts of Slurm and PBS before they are submitted", lint::parse},
}};

std::string help_text() {
  std::string text = R"(lockstep: data-parallel training on MPI, from data set to checkpoint

  lockstep train toy 50 10 --nproc 2         a first run: 50 epochs on two ranks
  lockstep shard synth digits --out d        make a data set from a seed
  lockstep shard stat d                      show its splits, classes and sizes
  lockstep train --help                      list recipes and flags
  lockstep shard --help                      list what can be done with data sets
  lockstep ckpt ls runs/toy-2026-01-31-1     list the checkpoints of a run
  lockstep doctor --nproc 4                  check whether a job of four ranks would run here
  lockstep lint job.sbatch                   check a job script

Commands
)";
  for (const Command& command : commands) text += fmt::format("  {:<8} {}\n", command.name, command.summary);
  text += R"(
  -h, --help       of the program, of a command, or of a verb: lockstep shard import --help
      --version

Exit codes: 0 done, 1 a verification failed, 2 usage or bad input, 3 system or MPI, 4 a rank hangs,
85 stopped with a checkpoint (resume with --resume auto), 128+n ended by signal n.
)";
  return text;
}

std::string version_text() {
  return fmt::format("lockstep {} ({}, {})\n", core::version(), core::compiler(), core::build_type());
}

Invocation parse(const std::vector<std::string>& arguments) {
  if (arguments.empty())
    core::fail_usage({.what = "a command is missing",
                      .where = "",
                      .expected = "one of " + core::join(core::names_of(commands)),
                      .fix = "lockstep --help explains them"});
  const std::string& word = arguments.front();
  if (word == "--version") return {.text = version_text()};
  if (word == "-h" || word == "--help" || word == "help") return {.text = help_text()};
  std::vector<std::string> candidates = core::names_of(commands);
  if (word.starts_with('-')) candidates = {"--help", "--version"};
  const auto is_it = [&word](const Command& command) { return command.name == word; };
  const auto command = std::find_if(commands.begin(), commands.end(), is_it);
  if (command == commands.end()) core::fail_unknown(word.starts_with('-') ? "flag" : "command", word, "", candidates);
  Invocation invocation = command->parse({arguments.begin() + 1, arguments.end()});
  if (invocation.run) core::check_instruction_limit();
  return invocation;
}

}  // namespace

bool asks_for_help(const std::vector<std::string>& arguments) {
  const auto is_help = [](const std::string& word) { return word == "-h" || word == "--help"; };
  return std::any_of(arguments.begin(), arguments.end(), is_help);
}

void declare_launch(core::Flags& flags, Invocation& invocation) {
  flags.number("--nproc N", invocation.nproc, 1, runtime::most_processes,
               {"start N ranks on this machine", "what the launcher started"});
  flags.number("--expect-ranks N", invocation.expect_ranks, 1, std::numeric_limits<int>::max(),
               {"end at once if there are not N ranks; with --dry-run, plan for N", "any number"});
  flags.toggle("--verbose", invocation.verbose, "with --nproc: also print the launcher's messages about a failed job");
  flags.seconds("--timeout T", invocation.timeout,
                "after T without progress, name the rank that hangs or is gone, and end; 0: never");
}

Invocation make_invocation(const std::string& usage, Action (*declare)(core::Flags&),
                           const std::vector<std::string>& arguments) {
  Invocation invocation;
  core::Flags flags{usage};
  const Action action = declare(flags);
  declare_launch(flags, invocation);
  flags.parse(arguments);
  if (action.check) action.check();
  if (action.drill && !action.drill->is_empty()) invocation.drill = action.drill;
  invocation.alone = runtime::Alone::without_mpi;
  invocation.run = [run = action.run](const runtime::Session& session, runtime::Watchdog&) { return run(session); };
  return invocation;
}

Invocation parse_command_line(const std::vector<std::string>& arguments) {
  try {
    return parse(arguments);
  } catch (const core::Error& error) {
    return {.text = {}, .error = error};
  }
}

int run_on_ranks(const runtime::Session& session, const Invocation& invocation, const runtime::LauncherHint& hint,
                 runtime::Watchdog& watchdog) {
  const auto alone = runtime::find_singletons(hint, session.world().n_ranks());
  if (alone && !invocation.judges_launch) {
    core::log_error(alone->what());  // every rank reports it, because the others may not exist
    return core::to_int(alone->code());
  }
  if (const auto bad = session.agree(invocation.error)) return core::to_int(*bad);
  if (!invocation.text.empty()) {
    const auto unprinted = core::complaint_of([&] {
      if (session.world().rank() == 0) core::print(invocation.text);
    });
    return core::to_int(session.agree(unprinted).value_or(core::ExitCode::ok));
  }
  const auto others = core::complaint_of([&] {
    const bool is_assumed = invocation.assumes_ranks && session.world().n_ranks() == 1;
    runtime::check_n_ranks(is_assumed ? 0 : invocation.expect_ranks, invocation.nproc, session.world().n_ranks());
    if (invocation.drill) invocation.drill->require_ranks(session.world().n_ranks());
  });
  if (const auto bad = session.agree(others)) return core::to_int(*bad);
  if (invocation.drill && session.world().rank() == 0)
    core::log_warning(fmt::format("a fire drill: faults are injected, {}", core::join(invocation.drill->texts())));
  watchdog.enter(runtime::Activity::work);
  return invocation.run(session, watchdog);
}

}  // namespace lockstep::training

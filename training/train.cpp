#include "training/train.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/flags.hpp"
#include "runtime/launcher.hpp"
#include "runtime/watch/watchdog.hpp"
#include "training/check/replay.hpp"
#include "training/check/self_test.hpp"
#include "training/check/verify_resume.hpp"
#include "training/recipe/cuts.hpp"
#include "training/train/dry_run.hpp"
#include "training/train/memory.hpp"
#include "training/train/open_device.hpp"
#include "training/train/trainer.hpp"

namespace lockstep::training {
namespace {

struct TrainCommand {
  RecipeWords words{};
  ResolvedRecipe resolved{};
  RunOptions options{};
};

/// Collective. Ranks on different nodes may have read different files.
void require_same_recipe(const runtime::Communicator& world, const Recipe& recipe) {
  const auto mine = nlohmann::json::parse(recipe_json(recipe));
  const auto first = nlohmann::json::parse(world.broadcast(mine.dump()));
  for (const auto& [key, value] : first.items()) {
    if (mine.contains(key) && mine[key] == value) continue;
    core::fail_usage(
        {.what = fmt::format("rank {} on {} has another recipe than rank 0: {} is {}, not {}", world.rank(),
                             runtime::host_name(), key, mine.value(key, nlohmann::json{}).dump(), value.dump()),
         .where = recipe.name,
         .expected = "the same recipe and flags on all ranks",
         .fix = "name a file that all nodes see, and start all ranks with one command"});
  }
}

int train(TrainCommand& command, const runtime::Session& session, runtime::Watchdog& watchdog) {
  watchdog.enter(runtime::Activity::setup);
  Recipe& recipe = command.resolved.recipe;
  std::signal(SIGPIPE, SIG_IGN);  // a reader of the output that leaves does not end the training
  const auto misfit = core::complaint_of([&] {
    require_same_recipe(session.world(), recipe);
    require_address_space();
  });
  if (const auto bad = session.agree(misfit)) return core::to_int(*bad);
  if (session.world().n_ranks() > 1) command.options.assumed_ranks = 0;
  const int threads = threads_of(session.world(), recipe);
  std::unique_ptr<OpenDevice> device;
  const auto no_device = core::complaint_of([&] {
    device =
        open_device(session.world(), command.options.device, threads, command.options.tune && !command.options.dry_run);
  });
  if (const auto bad = session.agree(no_device)) return core::to_int(*bad);
  const auto bad_place = core::complaint_of([&] {
    settle(recipe, device->choice);
    check_ranks(recipe, session.world().n_ranks());
  });
  if (const auto bad = session.agree(bad_place)) return core::to_int(*bad);
  // A rank that computes on all its cores has none left for reading ahead.
  if (!recipe.device.runs_behind && recipe.loader_threads < 0 && recipe.threads == 0) recipe.loader_threads = 0;
  if (command.options.dry_run && recipe.device.has_own_memory)
    return describe_on_gpus(session, *device, command.resolved, command.options, watchdog);
  std::unique_ptr<Trainer> trainer;
  const auto complaint = core::complaint_of(
      [&] { trainer = std::make_unique<Trainer>(session, *device, command.resolved, command.options, watchdog); });
  if (const auto bad = session.agree(complaint)) return core::to_int(*bad);
  return command.options.dry_run ? trainer->describe() : trainer->run();
}

/// For --verify-resume, which starts jobs itself.
void make_verification(Invocation& invocation, const TrainCommand& command) {
  const VerifyRequest request{.words = command.words,
                              .resolved = command.resolved,
                              .options = command.options,
                              .n_ranks = std::max(invocation.nproc, 1),
                              .timeout = invocation.timeout,
                              .verbose = invocation.verbose};
  invocation.supervise = [request](runtime::JobRunner& jobs) { return verify_resume(request, jobs); };
  invocation.run = [](const runtime::Session& session, runtime::Watchdog&) {
    const core::Error under_launcher{
        core::ExitCode::usage,
        {.what = "--verify-resume starts its ranks itself, but a launcher has started these",
         .where = "--verify-resume",
         .expected = "no launcher",
         .fix = "start it without mpirun or srun, with --nproc N"}};
    return core::to_int(*session.agree(under_launcher));
  };
}

constexpr std::string_view exit_codes = R"(
Exit codes: 0 done, 1 the loss is not finite or a verification failed, 2 usage or bad input, 3 system or MPI, 4 a rank
hangs, 85 stopped with a checkpoint (resume with --resume auto), 128+n ended by signal n.
)";

std::string train_help() {
  core::Flags flags{""};
  RunOptions options;
  Invocation launch;
  flags.heading("The run");
  declare_launch(flags, launch);
  declare_run(flags, options);
  return fmt::format("{}\n{}{}", recipe_help(), flags.help(help_column), exit_codes);
}

}  // namespace

Invocation parse_train(const std::vector<std::string>& arguments) {
  if (asks_for_help(arguments)) return {.text = train_help()};
  if (asks_for_replay(arguments)) return parse_replay(arguments);
  if (asks_for_self_test(arguments)) return parse_self_test(arguments);
  auto command = std::make_shared<TrainCommand>();
  Invocation invocation;
  core::Flags flags{"lockstep train RECIPE [EPOCHS [SAVE-EVERY]] [flags]"};
  declare_recipe(flags, command->words);
  declare_run(flags, command->options);
  declare_launch(flags, invocation);
  flags.parse(arguments);
  if (command->options.verify_resume) require_deterministic(command->words);
  command->resolved = resolve_recipe(command->words);
  check_run(command->options, command->resolved);
  if (command->options.print_config) return {.text = print_config(command->resolved)};
  require_data(command->resolved.recipe);
  command->options.arguments = arguments;
  if (command->options.verify_resume) {
    make_verification(invocation, *command);
    return invocation;
  }
  invocation.assumes_ranks = command->options.dry_run && invocation.nproc == 0 && invocation.expect_ranks > 1;
  if (invocation.assumes_ranks) command->options.assumed_ranks = invocation.expect_ranks;
  invocation.threads = command->resolved.recipe.threads;
  invocation.drill = command->options.drill;
  invocation.is_guarded_alone = true;
  invocation.is_resumable = !command->options.dry_run && !command->options.evaluate_only;
  invocation.run = [command](const runtime::Session& session, runtime::Watchdog& watchdog) {
    return train(*command, session, watchdog);
  };
  return invocation;
}

}  // namespace lockstep::training

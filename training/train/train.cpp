#include "training/train/train.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/flags.hpp"
#include "nn/host/kokkos_session.hpp"
#include "runtime/launcher.hpp"
#include "runtime/topology.hpp"
#include "runtime/watch/watchdog.hpp"
#include "training/recipe/keys.hpp"
#include "training/train/memory.hpp"
#include "training/train/trainer.hpp"

namespace lockstep::training {
namespace {

struct TrainCommand {
  RecipeWords words{};
  ResolvedRecipe resolved{};
  TrainOptions options{};
  bool print_config = false;
};

std::string flags_help() {
  return R"(
The run
      --nproc N             start N ranks on this machine                             (what the launcher started)
      --verbose             with --nproc: also what the launcher says about a job that failed
      --run-dir FOLDER      where the run is kept                                     (runs/RECIPE-DATE-N)
      --init-from FILE      begin with these weights instead of the seed's
      --save-weights FILE   where the weights go                                      (weights.h5 in the run's folder)
      --evaluate-only       measure accuracy or loss of the split for evaluation, train nothing
      --compat              print the lines of the tutorial that the recipe replaces
      --dry-run             tell what a run needs: memory, steps, traffic; and train nothing
      --profile             time by layer, with its share of the step and of what the machine can do
      --timeout T           name the rank that hangs, and end, after T without progress; 0: never  (300s)
      --digest              at the end, print a digest of weights and losses
      --print-config        print the recipe with the origin of each value, and train nothing
)";
}

void declare(core::Flags& flags, TrainCommand& command) {
  declare_recipe(flags, command.words);
  flags.text("--run-dir", command.options.run_dir);
  flags.text("--init-from", command.options.init_from);
  flags.text("--save-weights", command.options.save_weights);
  flags.toggle("--profile", command.options.profile);
  flags.toggle("--dry-run", command.options.dry_run);
  flags.toggle("--evaluate-only", command.options.evaluate_only);
  flags.toggle("--compat", command.options.compat);
  flags.toggle("--digest", command.options.digest);
  flags.toggle("--print-config", command.print_config);
}

bool is_of_training(const Key& key) {
  constexpr std::array<std::string_view, 6> of_batches{"accumulate", "epochs",         "samples",
                                                       "max-steps",  "evaluate-every", "save-every"};
  return key.section == Section::optimizer || key.section == Section::schedule ||
         std::ranges::find(of_batches, key.name) != of_batches.end();
}

/// Nothing that was typed is without effect.
void check_evaluate_only(const TrainOptions& options, const ResolvedRecipe& resolved) {
  if (!options.evaluate_only) return;
  std::string flag;
  for (std::size_t i = 0; i < all_keys().size(); ++i)
    if (resolved.origins[i].is_given && resolved.origins[i].layer == Layer::command_line &&
        is_of_training(all_keys()[i]))
      flag = resolved.origins[i].where;
  if (!options.save_weights.empty()) flag = "--save-weights";
  if (options.compat) flag = "--compat";
  if (options.dry_run) flag = "--dry-run";
  if (options.profile) flag = "--profile";
  if (flag.empty()) return;
  core::fail_usage({.what = fmt::format("{} goes with training, and --evaluate-only trains nothing", flag),
                    .where = flag,
                    .expected = "one of the two",
                    .fix = "leave out one"});
}

/// Threads of this rank: as the recipe says, or its share of the cores. Deterministic runs need the same number however
/// many ranks there are: oneDNN's weight gradients differ in their bits between 1 and 2.
int n_threads(const runtime::Communicator& world, const Recipe& recipe) {
  const auto share = static_cast<int>(runtime::spare_cores(world)) + 1;
  if (recipe.threads > 0) return recipe.threads;
  return recipe.deterministic ? 1 : share;
}

/// Collective. Ranks of different nodes may have read different files.
void require_same_recipe(const runtime::Communicator& world, const Recipe& recipe) {
  const auto mine = nlohmann::json::parse(recipe_json(recipe));
  const auto first = nlohmann::json::parse(world.broadcast(mine.dump()));
  for (const auto& [key, value] : first.items()) {
    if (mine.contains(key) && mine[key] == value) continue;
    core::fail_usage(
        {.what = fmt::format("rank {} on {} has another recipe than rank 0: {} is {}, there {}", world.rank(),
                             runtime::host_name(), key, mine.value(key, nlohmann::json{}).dump(), value.dump()),
         .where = recipe.name,
         .expected = "the same recipe and flags on all ranks",
         .fix = "name a file that all nodes see, and start all ranks by one command"});
  }
}

int train(TrainCommand& command, const runtime::Session& session, runtime::Watchdog& watchdog) {
  watchdog.enter(runtime::Phase::setup);
  Recipe& recipe = command.resolved.recipe;
  std::signal(SIGPIPE, SIG_IGN);  // a reader of the output that leaves does not end the training
  const auto misfit = core::complaint_of([&] {
    require_same_recipe(session.world(), recipe);
    require_address_space();
  });
  if (const auto bad = session.agree(misfit)) return core::to_int(*bad);
  const int threads = n_threads(session.world(), recipe);
  // Whoever computes on all cores has none to spare for reading ahead.
  if (recipe.loader_threads < 0 && recipe.threads == 0) recipe.loader_threads = 0;
  const nn::host::KokkosSession kokkos{threads};
  std::unique_ptr<Trainer> trainer;
  const auto complaint = core::complaint_of(
      [&] { trainer = std::make_unique<Trainer>(session, command.resolved, command.options, watchdog); });
  if (const auto bad = session.agree(complaint)) return core::to_int(*bad);
  return command.options.dry_run ? trainer->describe() : trainer->run();
}

}  // namespace

Invocation parse_train(const std::vector<std::string>& arguments) {
  if (asks_for_help(arguments)) return {.text = recipe_help() + flags_help()};
  auto command = std::make_shared<TrainCommand>();
  Invocation invocation;
  core::Flags flags{"lockstep train RECIPE [EPOCHS [SAVE-EVERY]] [flags]"};
  declare(flags, *command);
  flags.number("--nproc", invocation.nproc, 1, runtime::most_processes);
  flags.seconds("--timeout", invocation.timeout);
  flags.toggle("--verbose", invocation.verbose);
  flags.parse(arguments);
  command->resolved = resolve_recipe(command->words);
  check_evaluate_only(command->options, command->resolved);
  if (command->print_config) return {.text = print_config(command->resolved)};
  require_data(command->resolved.recipe);
  command->options.arguments = arguments;
  invocation.threads = command->resolved.recipe.threads;
  invocation.is_guarded_alone = true;
  invocation.run = [command](const runtime::Session& session, runtime::Watchdog& watchdog) {
    return train(*command, session, watchdog);
  };
  return invocation;
}

}  // namespace lockstep::training

#include "training/train/train.hpp"

#include <memory>

#include "core/flags.hpp"
#include "runtime/launcher.hpp"
#include "runtime/topology.hpp"
#include "tensor/session.hpp"
#include "training/train/trainer.hpp"

namespace lockstep::training::train {
namespace {

struct Command {
  RecipeWords words{};
  ResolvedRecipe resolved{};
  TrainOptions options{};
  bool print_config = false;
};

std::string flags_help() {
  return R"(
The run
      --nproc N             start N ranks on this machine                             (what the launcher started)
      --run-dir FOLDER      where the run is kept                                     (runs/RECIPE-DATE-N)
      --init-from FILE      begin with these weights instead of the seed's
      --save-weights FILE   where the weights go                                      (weights.h5 in the run's folder)
      --evaluate-only       measure accuracy or loss, train nothing
      --compat              print the lines of the tutorial that the recipe replaces
      --digest              at the end, print a digest of weights and losses
      --print-config        print the recipe with the origin of each value, and train nothing
)";
}

void declare(core::Flags& flags, Command& command) {
  declare_recipe(flags, command.words);
  flags.text("--run-dir", command.options.run_dir);
  flags.text("--init-from", command.options.init_from);
  flags.text("--save-weights", command.options.save_weights);
  flags.toggle("--evaluate-only", command.options.evaluate_only);
  flags.toggle("--compat", command.options.compat);
  flags.toggle("--digest", command.options.digest);
  flags.toggle("--print-config", command.print_config);
}

/// Threads of this rank: as the recipe says, or its share of the cores. Deterministic runs need the same number however
/// many ranks there are: oneDNN's weight gradients differ in their bits between 1 and 2.
int n_threads(const runtime::Communicator& world, const Recipe& recipe) {
  const auto share = static_cast<int>(runtime::spare_cores(world)) + 1;
  if (recipe.threads > 0) return recipe.threads;
  return recipe.deterministic ? 1 : share;
}

int train(Command& command, const runtime::Session& session) {
  Recipe& recipe = command.resolved.recipe;
  const int threads = n_threads(session.world(), recipe);
  // Whoever computes on all cores has none to spare for reading ahead.
  if (recipe.loader_threads < 0 && recipe.threads == 0) recipe.loader_threads = 0;
  const tensor::Session kokkos{threads};
  std::unique_ptr<Trainer> trainer;
  const auto complaint =
      core::complaint_of([&] { trainer = std::make_unique<Trainer>(session, command.resolved, command.options); });
  if (const auto bad = session.agree(complaint)) return core::to_int(*bad);
  return trainer->run();
}

}  // namespace

Invocation parse(const std::vector<std::string>& arguments) {
  if (asks_for_help(arguments)) return {.text = recipe_help() + flags_help()};
  auto command = std::make_shared<Command>();
  Invocation invocation;
  core::Flags flags{"lockstep train RECIPE [EPOCHS [SAVE-EVERY]] [flags]"};
  declare(flags, *command);
  flags.number("--nproc", invocation.nproc, 1, runtime::most_processes);
  flags.parse(arguments);
  command->resolved = resolve_recipe(command->words);
  if (command->print_config) return {.text = print_config(command->resolved)};
  require_data(command->resolved.recipe);
  command->options.arguments = arguments;
  invocation.run = [command](const runtime::Session& session) { return train(*command, session); };
  return invocation;
}

}  // namespace lockstep::training::train

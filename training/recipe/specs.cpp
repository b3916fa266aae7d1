#include "training/recipe/specs.hpp"

#include <algorithm>
#include <cmath>

#include "training/recipe/cuts.hpp"
#include "training/recipe/words.hpp"

namespace lockstep::training {
namespace {

/// The product, or more than any training sees if it overflows.
std::uint64_t product(std::uint64_t a, std::uint64_t b) noexcept {
  constexpr std::uint64_t most = std::uint64_t{1} << 62;
  return b > 0 && a > most / b ? most : a * b;
}

}  // namespace

std::uint64_t total_samples(const Recipe& recipe, std::uint64_t n_epoch_samples) noexcept {
  return recipe.samples > 0 ? recipe.samples : product(recipe.epochs, n_epoch_samples);
}

Goal goal_of(const Recipe& recipe, std::uint64_t n_epoch_samples, std::uint64_t n_batches) noexcept {
  Goal goal{.n_samples = total_samples(recipe, n_epoch_samples)};
  const std::uint64_t rest = goal.n_samples % n_epoch_samples;
  goal.n_steps = goal.n_samples / n_epoch_samples * n_batches + (rest + recipe.batch - 1) / recipe.batch;
  if (recipe.max_steps > 0) goal.n_steps = std::min(goal.n_steps, recipe.max_steps);
  const std::uint64_t n_whole = goal.n_steps / n_batches, n_rest_steps = goal.n_steps % n_batches;
  goal.is_within_epoch = n_rest_steps > 0;
  goal.n_epochs = n_whole + (n_rest_steps > 0 ? 1 : 0);
  goal.n_samples = n_whole * n_epoch_samples + std::min(n_rest_steps * recipe.batch, n_epoch_samples);
  return goal;
}

std::optional<double> rmse_of(const Recipe& recipe, double loss) noexcept {
  return recipe.loss == nn::Loss::mse ? std::optional{std::sqrt(loss)} : std::nullopt;
}

optim::ScheduleSpec schedule_spec(const Recipe& recipe, std::uint64_t n_epoch_samples) {
  optim::ScheduleSpec spec{.kind = recipe.schedule,
                           .lr = recipe.lr,
                           .warmup_samples = recipe.warmup.samples(n_epoch_samples),
                           .warmup_factor = recipe.warmup_factor,
                           .gamma = recipe.gamma,
                           .step_samples = recipe.step_size.samples(n_epoch_samples),
                           .total_samples = total_samples(recipe, n_epoch_samples),
                           .min_lr = recipe.min_lr,
                           .power = recipe.power};
  for (const Length& milestone : recipe.milestones) spec.milestones.push_back(milestone.samples(n_epoch_samples));
  return spec;
}

data::LoaderOptions loader_options(const Recipe& recipe, bool is_evaluation, int n_ranks) {
  data::LoaderOptions options;
  options.global_batch = recipe.batch;
  options.sampler = {.order = recipe.order, .seed = recipe.seed, .window_chunks = recipe.window_chunks};
  options.augment.steps = is_evaluation ? data::parse_augment(recipe.val_augment, "val-augment")
                                        : data::parse_augment(recipe.augment, "augment");
  options.augment.key = is_evaluation ? "val-augment" : "augment";
  options.augment.seed = recipe.seed;
  options.cache = recipe.cache;
  options.threads = recipe.loader_threads;
  options.drop_last = recipe.drop_last && !is_evaluation;
  options.is_evaluation = is_evaluation;
  if (is_evaluation) return options;
  options.unit = unit_of_cuts(recipe);
  options.n_together = static_cast<std::uint64_t>(ranks_of_group(recipe, n_ranks));
  return options;
}

const data::Synthesizer& synthesizer_of(const Recipe& recipe) {
  const ModelWord& model = core::find_named(models, recipe.model, "model", "model");
  return core::find_named(data::synthesizers, model.synthetic, "kind", "synthetic");
}

data::SynthOptions synth_options(const Recipe& recipe) noexcept {
  data::SynthOptions options;
  options.samples =
      recipe.synthetic_steps > 0 ? product(recipe.synthetic_steps, recipe.batch) : recipe.synthetic_samples;
  options.seed = recipe.seed;
  options.height = options.width = recipe.image_size;
  if (recipe.classes > 0) options.classes = recipe.classes;
  if (recipe.users > 0) options.users = recipe.users;
  if (recipe.items > 0) options.items = recipe.items;
  return options;
}

}  // namespace lockstep::training

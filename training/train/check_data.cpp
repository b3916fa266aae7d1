#include "training/train/check_data.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.hpp"
#include "core/suggest.hpp"
#include "training/recipe/keys.hpp"

namespace lockstep::training {

void check_batches(const ResolvedRecipe& resolved, const Batches& training) {
  const Recipe& recipe = resolved.recipe;
  if (training.n_batches() > 0) return;
  core::fail_usage({.what = "there is no batch to train on",
                    .where = recipe.data,
                    .expected = fmt::format("at least {} samples", recipe.drop_last ? recipe.batch : 1),
                    .fix = "use a smaller batch, or another set"});
}

void check_evaluation(const ResolvedRecipe& resolved, const Batches* training, const Batches* evaluation) {
  const Recipe& recipe = resolved.recipe;
  const bool is_named = !recipe.val_split.empty() && resolved.origins[*find_key("val-split")].is_given;
  if (evaluation == nullptr && (training == nullptr || is_named))
    core::fail_usage({.what = recipe.val_split.empty()
                                  ? "there are no samples to evaluate on"
                                  : fmt::format("the set has no split '{}' to evaluate on", recipe.val_split),
                      .where = recipe.synthetic ? "val-split, synthetic" : fmt::format("val-split, {}", recipe.data),
                      .expected = "a split of the set",
                      .fix = recipe.synthetic ? "name a set that has one: --data FOLDER --val-split NAME"
                                              : "name one of it (lockstep shard stat lists them): --val-split "
                                                "NAME; lockstep shard split makes one"});
  if (evaluation != nullptr && evaluation->info().n_samples == 0)
    core::fail_usage({.what = fmt::format("the split '{}' has no samples to evaluate on", evaluation->info().split),
                      .where = fmt::format("val-split, {}", recipe.data),
                      .expected = "a split with at least one sample",
                      .fix = "import the set again, name another split, or --val-split '' for none"});
  if (evaluation == nullptr || training == nullptr || evaluation->info().input == training->info().input) return;
  core::fail_usage(
      {.what = fmt::format("samples for evaluation are [{}], those for training [{}]",
                           fmt::join(evaluation->info().input, ", "), fmt::join(training->info().input, ", ")),
       .where = "augment, val-augment",
       .expected = "the same shape",
       .fix = "a --val-augment that ends with the same size, such as resize:256,centercrop:224"});
}

std::vector<std::string> surprises(const ResolvedRecipe& resolved, const Goal& goal, const Batches* training,
                                   const Batches* evaluation, bool has_weights) {
  const Recipe& recipe = resolved.recipe;
  if (training == nullptr) {
    if (has_weights) return {};
    return {"the evaluated model is untrained: its weights come from the seed; --init-from loads others"};
  }
  std::vector<std::string> all;
  const std::string& split = training->info().split;
  if (!split.empty() && split != recipe.train_split)
    all.push_back(fmt::format("'{}' has no split '{}': training uses its only one, '{}'", recipe.data,
                              recipe.train_split, split));
  if (evaluation != nullptr && !split.empty() && evaluation->info().split == split)
    all.push_back(fmt::format(
        "evaluation uses the samples of training, those of '{}'; lockstep shard split makes a split for evaluation",
        split));
  if (evaluation == nullptr && !recipe.val_split.empty())
    all.push_back(
        fmt::format("nothing is evaluated, because {} has no split '{}'; --val-split names another one, or '' for none",
                    recipe.synthetic ? "the synthetic set" : fmt::format("'{}'", recipe.data), recipe.val_split));
  std::vector<std::string> others = training->info().splits;
  std::erase(others, split);
  const bool is_meant = resolved.origins[*find_key("val-split")].is_given;
  if (evaluation == nullptr && recipe.val_split.empty() && !is_meant && !others.empty())
    all.push_back(fmt::format("nothing is evaluated, although '{}' also has {}: use --val-split {}", recipe.data,
                              core::join(others), others.front()));
  if (const std::uint64_t n = training->info().n_samples; recipe.batch > n)
    all.push_back(
        fmt::format("a batch of {} exceeds the {} samples of the set: each step uses all of them", recipe.batch, n));
  if (recipe.samples > 0 && recipe.max_steps == 0 && goal.n_samples != recipe.samples)
    all.push_back(fmt::format("samples {} is rounded up to {}: training ends after a whole batch (of {})",
                              recipe.samples, goal.n_samples, recipe.batch));
  return all;
}

std::vector<std::string> surprises(const nn::Executor& executor) {
  std::vector<std::string> all;
  if (executor.computes_in_floats())
    all.emplace_back("this processor has no instructions for bf16: values are kept in bf16 and computed in float32");
  if (const std::vector<std::string> slow = executor.slow_layers(); !slow.empty())
    all.push_back(fmt::format("the library has no fast code for this processor for {}", fmt::join(slow, ", ")));
  return all;
}

}  // namespace lockstep::training

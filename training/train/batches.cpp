#include "training/train/batches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/dtype.hpp"
#include "core/error.hpp"
#include "core/flags.hpp"
#include "core/suggest.hpp"
#include "data/load/stage.hpp"
#include "data/read/id_counts.hpp"
#include "data/read/shard_set.hpp"
#include "nn/graph/models.hpp"
#include "training/recipe/specs.hpp"
#include "training/train/model.hpp"

namespace lockstep::training {
namespace {

/// The trainer's rank and its data.
struct Trained {
  const runtime::Communicator& world;
  const nn::Device& device;
  const Recipe& recipe;
};

data::LoaderOptions options_for(const Trained& trained, const data::SetSpec& spec, bool is_evaluation) {
  const auto& [world, device, recipe] = trained;
  data::LoaderOptions options = loader_options(recipe, is_evaluation, world.n_ranks());
  options.augment.dtype = nn::find_model(recipe.model).takes_ids ? core::DType::int64 : core::DType::float32;
  options.y_dtype = spec.classes.empty() ? core::DType::float32 : core::DType::int64;
  options.most_pixel_channels = device.most_pixel_channels();
  options.is_repeated = recipe.synthetic && recipe.synthetic_steps > 0 && !is_evaluation;
  return options;
}

std::vector<std::uint64_t> synthetic_ids(const Recipe& recipe) {
  if (!nn::find_model(recipe.model).takes_ids) return {};
  const data::SynthOptions options = synth_options(recipe);
  return {options.users, options.items};
}

[[noreturn]] void fail_no_training_split(const Recipe& recipe, const std::vector<std::string>& splits) {
  core::fail_usage(
      {.what = fmt::format("the set has no split '{}' to train on, only {}", recipe.train_split, core::join(splits)),
       .where = fmt::format("train-split, {}", recipe.synthetic ? "synthetic" : recipe.data),
       .expected = "a split of the set",
       .fix = fmt::format("--train-split {}; or lockstep shard split makes one for training and one for "
                          "evaluation; --evaluate-only needs none for training",
                          splits.empty() ? "NAME" : splits.front())});
}

std::unique_ptr<Batches> open_synthetic(const Trained& trained, bool is_evaluation) {
  const Recipe& recipe = trained.recipe;
  std::unique_ptr<data::Source> source = synthesizer_of(recipe).open(synth_options(recipe));
  check_set(recipe, source->spec());
  const std::string& wanted = is_evaluation ? recipe.val_split : recipe.train_split;
  const std::vector<data::SourceSplit> splits = source->splits();
  const auto split = std::ranges::find(splits, wanted, &data::SourceSplit::name);
  if (split == splits.end() || split->n_samples == 0) {
    if (is_evaluation) return nullptr;
    fail_no_training_split(recipe, core::names_of(splits));
  }
  DataInfo info{.spec = source->spec(), .n_ids = synthetic_ids(recipe), .n_samples = split->n_samples};
  data::Loader loader{trained.world, std::move(source), static_cast<std::size_t>(split - splits.begin()),
                      options_for(trained, info.spec, is_evaluation)};
  return std::make_unique<Batches>(std::move(loader), std::move(info));
}

std::unique_ptr<Batches> open_split(const Trained& trained, const std::string& folder, const data::Manifest& manifest,
                                    const std::string& split, const std::vector<std::uint64_t>& n_ids,
                                    bool is_evaluation) {
  const auto set = std::make_shared<const data::ShardSet>(folder, manifest, split);
  DataInfo info{.spec = set->spec(),
                .n_ids = n_ids,
                .n_samples = set->n_samples(),
                .stored_bytes = manifest.split(split, folder).stored_bytes().value,
                .split = split,
                .splits = core::names_of(manifest.splits)};
  return std::make_unique<Batches>(data::Loader{trained.world, set, options_for(trained, info.spec, is_evaluation)},
                                   std::move(info));
}

}  // namespace

OpenBatches open_batches(const runtime::Communicator& world, const nn::Device& device, const Recipe& recipe,
                         bool is_trained, const Fit& fit, const std::function<void()>& on_progress) {
  const Trained trained{world, device, recipe};
  OpenBatches open;
  if (recipe.synthetic) {
    if (is_trained) open.training = open_synthetic(trained, false);
    if (!recipe.val_split.empty()) open.evaluation = open_synthetic(trained, true);
    return open;
  }
  const data::Manifest manifest = data::read_manifest(recipe.data, world);
  const std::vector<std::string> splits = core::names_of(manifest.splits);
  const auto has = [&splits](const std::string& split) { return std::ranges::find(splits, split) != splits.end(); };
  const bool is_evaluated = !recipe.val_split.empty() && has(recipe.val_split);
  // A set with one split, such as MNIST's test files alone, is used for training whatever the name of the split.
  const bool is_only = splits.size() == 1 && recipe.train_split == Recipe{}.train_split;
  const std::string train_split = is_only ? splits.front() : recipe.train_split;
  if (is_trained && !has(train_split)) fail_no_training_split(recipe, splits);
  if (!is_trained && !is_evaluated) return open;
  check_set(recipe, manifest.spec);
  const bool takes_ids = nn::find_model(recipe.model).takes_ids;
  if (!takes_ids && !recipe.stage.empty()) {
    const data::Split& split = manifest.split(is_trained ? train_split : recipe.val_split, recipe.data);
    const data::LoaderOptions options = options_for(trained, manifest.spec, !is_trained);
    const data::Augment augment{manifest.spec, options.augment};
    fit({.spec = manifest.spec,
         .input = augment.output().shape,
         .are_pixels = data::keeps_pixels(options, augment),
         .n_samples = split.n_samples},
        data::batch_plan(options, split.n_samples, world.rank(), world.n_ranks()).most());
  }
  const std::string folder =
      recipe.stage.empty() ? recipe.data : data::stage(world, recipe.data, recipe.stage, on_progress);
  std::vector<std::uint64_t> n_ids;
  if (takes_ids) n_ids = data::count_ids(world, folder, manifest, on_progress);
  if (is_trained) open.training = open_split(trained, folder, manifest, train_split, n_ids, false);
  if (is_evaluated) open.evaluation = open_split(trained, folder, manifest, recipe.val_split, n_ids, true);
  return open;
}

std::optional<DataRecord> gather_data(const runtime::Communicator& world, const Recipe& recipe, const Batches* training,
                                      const Batches* evaluation) {
  if (recipe.synthetic) return std::nullopt;
  DataRecord all{.is_cached = true};
  for (const Batches* const batches : {training, evaluation}) {
    if (batches == nullptr) continue;
    const data::LoaderStats mine = batches->stats();
    for (const data::LoaderStats& stats : runtime::gather_values(world, std::span{&mine, 1})) {
      all.read.value += stats.bytes_read;
      all.n_chunks += stats.n_chunks;
      all.n_crc_failures += stats.n_crc_failures;
      all.is_cached = all.is_cached && stats.is_cached;
    }
    if (batches == training && recipe.order == data::Order::blocked) all.mixing = mine.mixing;
  }
  return all;
}

std::uint64_t n_epoch_samples(const Recipe& recipe, const Batches& batches, int n_ranks) noexcept {
  if (recipe.drop_last) return batches.n_batches() * recipe.batch;
  const std::uint64_t n = batches.info().n_samples,
                      ranks = recipe.order == data::Order::torch ? static_cast<std::uint64_t>(n_ranks) : 1;
  return (n + ranks - 1) / ranks * ranks;
}

}  // namespace lockstep::training

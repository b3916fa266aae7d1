#include "training/train/model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/error.hpp"
#include "nn/graph/models.hpp"
#include "parallel/unit_plan.hpp"
#include "training/recipe/specs.hpp"

namespace lockstep::training {
namespace {

std::uint64_t n_outputs(const Recipe& recipe, const data::SetSpec& spec) {
  if (recipe.loss == nn::Loss::mse) return spec.y.n_elements();
  if (recipe.classes == 0) return spec.classes.size();
  return recipe.classes;
}

[[noreturn]] void fail_for_x(const Recipe& recipe, const data::SetSpec& spec, std::string expected) {
  core::fail_usage({.what = fmt::format("x of the set is {}", spec.is_encoded() ? "images" : describe(spec.x)),
                    .where = fmt::format("model {}, data {}", recipe.model, recipe.data),
                    .expected = std::move(expected),
                    .fix = "name a set that fits the model, or another model"});
}

/// Requires two ids per sample, which all models of ids take.
void check_ids(const Recipe& recipe, const data::SetSpec& spec) {
  constexpr std::uint64_t n_columns = 2;
  if (spec.is_encoded() || core::is_floating(spec.x.dtype) || spec.x.n_elements() != n_columns)
    fail_for_x(recipe, spec, "two whole numbers per sample, user and item");
}

bool is_images(const data::SetSpec& spec) { return spec.is_encoded() || spec.x.shape.size() > 1; }

void check_numbers(const Recipe& recipe, const data::SetSpec& spec) {
  if (spec.classes.empty()) return;
  if (spec.classes.front() != "0")
    core::fail_usage({.what = fmt::format("y of the set is words: {}, ...", spec.classes.front()),
                      .where = fmt::format("model {}, data {}", recipe.model, recipe.data),
                      .expected = fmt::format("numbers, which {} learns", recipe.model),
                      .fix = is_images(spec) ? "choose a model that learns classes"
                                             : "import another column as y: no model learns classes from tables"});
  core::fail_usage(
      {.what = fmt::format("y of the set is one of {} classes", spec.classes.size()),
       .where = fmt::format("model {}, data {}", recipe.model, recipe.data),
       .expected = fmt::format("numbers, which {} learns", recipe.model),
       .fix = is_images(spec) ? "import it with --no-classes (hdf5, npy), or choose a model that learns classes"
                              : "import it with --no-classes (csv, hdf5, npy): models learn classes only from images"});
}

void check_classes(const Recipe& recipe, const data::SetSpec& spec) {
  if (!is_images(spec)) fail_for_x(recipe, spec, "images, channels x height x width");
  const std::size_t n_classes = spec.classes.size();
  if (n_classes == 0 || spec.y.n_elements() != 1)
    core::fail_usage({.what = fmt::format("the set has no classes: y is {}", describe(spec.y)),
                      .where = fmt::format("model {}, data {}", recipe.model, recipe.data),
                      .expected = fmt::format("one class per sample, which {} learns", recipe.model),
                      .fix = "name a set with whole numbers as labels, imported without --no-classes"});
  if (recipe.classes > 0 && n_classes != recipe.classes)
    core::fail_usage(
        {.what = fmt::format("the set has {} classes, but the model has {} outputs", n_classes, recipe.classes),
         .where = "classes",
         .expected = "as many outputs as classes",
         .fix = fmt::format("--classes {}", n_classes)});
}

/// The rows of the embedding of `key`: from the recipe, or the number of ids in the set.
std::uint64_t n_rows(std::string_view key, std::uint64_t of_recipe, std::uint64_t n_ids) {
  if (of_recipe == 0) return n_ids;
  if (of_recipe < n_ids)
    core::fail_usage({.what = fmt::format("the set has {} {}, but the model has rows for {}", n_ids, key, of_recipe),
                      .where = std::string{key},
                      .expected = fmt::format("at least {}", n_ids),
                      .fix = fmt::format("leave {} out, or --{} {}", key, key, n_ids)});
  return of_recipe;
}

std::vector<std::uint64_t> n_ids_of(const Recipe& recipe, const DataInfo& data) {
  if (data.n_ids.empty()) return {};
  return {n_rows("users", recipe.users, data.n_ids[0]), n_rows("items", recipe.items, data.n_ids[1])};
}

/// Batch normalization with a single value per sample and channel; nullptr if there is none.
const nn::Node* find_single_pixels(const nn::Network& network) {
  const auto found = std::ranges::find_if(network.nodes(), [](const nn::Node& node) {
    return std::holds_alternative<nn::BatchNorm>(node.layer) && node.output[1] * node.output[2] == 1;
  });
  return found == network.nodes().end() ? nullptr : &*found;
}

/// Whether one of `n` samples is alone if they are normalized in groups of more.
bool is_one_alone(const Recipe& recipe, std::uint64_t n) noexcept { return n % recipe.bn_group == 1; }

/// The same for `n` samples divided into lanes and these into parts, whose sizes differ by at most one.
bool is_one_alone_in_lanes(const Recipe& recipe, std::uint64_t n) noexcept {
  for (const std::uint64_t of_lane : {n / recipe.lanes, div_up(n, recipe.lanes)})
    for (const std::uint64_t of_part : {of_lane / recipe.accumulate, div_up(of_lane, recipe.accumulate)})
      if (is_one_alone(recipe, of_part)) return true;
  return false;
}

/// The same for a batch divided among ranks, whose parts are cut between groups.
bool is_one_alone_in_ranks(const Recipe& recipe, const data::LoaderOptions& options, std::uint64_t n_samples,
                           std::uint64_t batch, int n_ranks) {
  const int n_together = ranks_of_group(recipe, n_ranks);
  for (int first = 0; first < n_ranks; first += n_together) {
    std::uint64_t n = 0;
    for (int rank = first; rank < first + n_together; ++rank)
      n += data::batch_plan(options, n_samples, rank, n_ranks).share(batch).n;
    if (is_one_alone(recipe, n)) return true;
  }
  return false;
}

/// Whether training continues for this many batches of an epoch.
bool comes_to_batch(const Recipe& recipe, std::uint64_t n_samples, std::uint64_t n_batches) noexcept {
  const std::uint64_t n_epoch = recipe.drop_last ? n_batches * recipe.batch : n_samples;
  return (recipe.max_steps == 0 || recipe.max_steps >= n_batches) &&
         total_samples(recipe, n_epoch) > (n_batches - 1) * recipe.batch;
}

}  // namespace

void check_set(const Recipe& recipe, const data::SetSpec& spec) {
  if (nn::find_model(recipe.model).takes_ids) check_ids(recipe, spec);
  recipe.loss == nn::Loss::mse ? check_numbers(recipe, spec) : check_classes(recipe, spec);
}

nn::Network make_network(const Recipe& recipe, const DataInfo& data) try {
  return nn::make_model({.name = recipe.model,
                         .input = data.input,
                         .n_outputs = n_outputs(recipe, data.spec),
                         .n_ids = n_ids_of(recipe, data),
                         .takes_pixels = data.are_pixels,
                         .has_dropout = recipe.dropout,
                         .cifar_stem = recipe.cifar_stem,
                         .has_log_softmax = recipe.loss == nn::Loss::nll});
} catch (const core::Error& error) {
  if (!error.problem().where.starts_with("layer ")) throw;
  core::fail_usage({.what = fmt::format("model {} does not accept the samples of {}: {} in {}", recipe.model,
                                        recipe.synthetic ? "the recipe" : fmt::format("'{}'", recipe.data),
                                        error.problem().what, error.problem().where),
                    .where = "model, data",
                    .expected = error.problem().expected,
                    .fix = "choose a recipe or model for such samples (tables of numbers without classes: toy; pairs "
                           "of ids: movielens; images: the others), or another set"});
}

std::optional<EmbeddingTable> find_table(const nn::Network& network, int parameter) {
  for (const nn::Node& node : network.nodes()) {
    const auto* const embedding = std::get_if<nn::Embedding>(&node.layer);
    if (embedding != nullptr && node.parameters[0] == parameter)
      return EmbeddingTable{embedding, embedding->lookups(network.shape(node.inputs[0])[0]).n};
  }
  return std::nullopt;
}

// All batches except the last consist of whole groups.
void check_groups(const Recipe& recipe, const nn::Network& network, std::uint64_t n_samples, int n_ranks) {
  const nn::Node* const node = find_single_pixels(network);
  if (node == nullptr) return;
  if (recipe.bn_group == 1)
    core::fail_usage({.what = fmt::format("groups of 1 sample, in layer '{}' of 1x1 pixels", node->name),
                      .where = "bn-group",
                      .expected = "more than 1 value per channel",
                      .fix = "a larger --bn-group, or larger images"});
  const data::LoaderOptions options = loader_options(recipe, false, n_ranks);
  const data::BatchPlan plan = data::batch_plan(options, n_samples, 0, n_ranks);
  if (plan.n_batches() == 0 || !comes_to_batch(recipe, n_samples, plan.n_batches())) return;
  const std::uint64_t last = plan.n_batches() - 1, n = plan.share(last).n_global;
  const bool is_alone = recipe.has_lanes() ? is_one_alone_in_lanes(recipe, n)
                                           : is_one_alone_in_ranks(recipe, options, n_samples, last, n_ranks);
  if (!is_alone) return;
  core::fail_usage({.what = fmt::format("the last batch of an epoch has {} instead of {} samples and leaves one alone "
                                        "in its group, in layer '{}' of 1x1 pixels",
                                        n, recipe.batch, node->name),
                    .where = "batch",
                    .expected = "more than 1 value per channel",
                    .fix = last > 0 ? "--drop-last, or another --batch" : "another --batch"});
}

std::vector<nn::Placed> place_in_units(std::span<const nn::Unplaced> parameters, const parallel::UnitOptions& options) {
  std::vector<parallel::UnitTensor> tensors;
  for (const nn::Unplaced& one : parameters)
    tensors.push_back({one.name, one.unit, one.n_elements, one.is_vector, one.is_shared});
  const parallel::UnitPlan plan = parallel::plan_units(tensors, options);
  std::vector<nn::Placed> places;
  for (const core::Slice& slice : plan.places) places.push_back({.slice = slice});
  for (std::size_t unit = 0; unit < plan.units.size(); ++unit)
    for (const std::size_t tensor : plan.units[unit].tensors) places[tensor].unit = unit;
  return places;
}

std::uint64_t passes_of_step(const Recipe& recipe, int n_ranks) {
  return recipe.accumulate * (recipe.has_lanes() ? recipe.lanes / static_cast<std::uint64_t>(n_ranks) : 1);
}

nn::ExecutorOptions executor_options(const Recipe& recipe, std::uint64_t max_batch, int n_ranks) {
  const bool divides_units = recipe.device.has_own_memory && parallel::divides_states(recipe.strategy_or_least());
  const parallel::UnitOptions units{.least_elements = static_cast<std::size_t>(recipe.unit_params),
                                    .n_parts = divides_units ? static_cast<std::size_t>(n_ranks) : 1};
  return {.max_batch = max_batch,
          .bn_group = recipe.bn_group,
          .loss = recipe.loss,
          .label_smoothing = recipe.label_smoothing,
          .precision = recipe.precision.value_or(nn::Precision::f32),
          .seed = recipe.seed,
          .is_deterministic = recipe.deterministic,
          .place = [units](std::span<const nn::Unplaced> parameters) { return place_in_units(parameters, units); }};
}

}  // namespace lockstep::training

#include "training/recipe/keys.hpp"

#include <algorithm>

#include "core/flags.hpp"
#include "nn/device.hpp"
#include "training/recipe/value.hpp"
#include "training/recipe/words.hpp"

namespace lockstep::training {
namespace {

template <const auto& table>
std::vector<std::string> names_in() {
  return core::names_of(table);
}

constexpr Range at_least(double least) { return {.least = least, .most = most_count}; }
constexpr Range from_to(double least, double most) { return {.least = least, .most = most}; }
constexpr Range above_zero{.excludes_least = true};
constexpr Range zero_to_below_one{.most = 1, .excludes_most = true};
constexpr Range above_zero_to_one{.most = 1, .excludes_least = true};
constexpr Range any_length{.most = 1e15};
constexpr Range length_above_zero{.most = 1e15, .excludes_least = true};
constexpr double most_rows = 2147483648.0;
constexpr double most_samples = 4294967295.0;  // of one step
constexpr double most_parts = 65536;

constexpr std::string_view resnets = "resnet18 resnet34 resnet50 resnet101 resnet152";
constexpr std::string_view classifiers = "mnist_cnn resnet18 resnet34 resnet50 resnet101 resnet152";

using Names = std::vector<std::string> (*)();

struct DefaultText {
  std::string_view text;
};
struct InsteadOf {
  std::string_view key;
};

constexpr DefaultText by_default(std::string_view text) { return {text}; }
constexpr InsteadOf instead_of(std::string_view key) { return {key}; }
constexpr Use goes_with(std::string_view selector, std::string_view words) { return {selector, words}; }

/// The optimizers that read a number.
template <bool optim::Uses::*member>
constexpr Use use_of{"optimizer", optim::users<member>};

constexpr void add(Key& key, Range range) { key.range = range; }
constexpr void add(Key& key, Names names) { key.names = names; }
constexpr void add(Key& key, TextRule rule) { key.rule = rule; }
constexpr void add(Key& key, DefaultText default_text) { key.default_text = default_text.text; }
constexpr void add(Key& key, InsteadOf other) { key.instead_of = other.key; }
constexpr void add(Key& key, Use use) { key.use = use; }

template <class... Traits>
constexpr Key key(Section section, std::string_view name, Member member, std::string_view placeholder,
                  std::string_view help, Traits... traits) {
  Key made{name, section, help, member, placeholder};
  (add(made, traits), ...);
  return made;
}

constexpr std::array keys{
    key(Section::model, "name", &Recipe::name, "NAME", "title of the run in reports", by_default("the recipe's")),
    key(Section::model, "model", &Recipe::model, "M", "", names_in<models>, by_default("a recipe's")),
    key(Section::model, "cifar-stem", &Recipe::cifar_stem, "",
        "ResNets: stem (first layers) for small images: 3x3, no max pool", goes_with("model", resnets)),
    key(Section::model, "classes", &Recipe::classes, "N", "outputs of a classifier", from_to(1, 16777216),
        by_default("as the set has"), goes_with("model", classifiers)),
    key(Section::model, "users", &Recipe::users, "N", "rows of the embedding of users; its width is 1.6 N^0.56",
        from_to(1, most_rows), by_default("as the set has"), goes_with("model", "movielens")),
    key(Section::model, "items", &Recipe::items, "N", "rows of the embedding of items; the same rule",
        from_to(1, most_rows), by_default("as the set has"), goes_with("model", "movielens")),
    key(Section::model, "dropout", &Recipe::dropout, "", "mnist_cnn: use its dropout layers",
        goes_with("model", "mnist_cnn")),
    key(Section::model, "loss", &Recipe::loss, "L", "", by_default("the model's")),
    key(Section::model, "label-smoothing", &Recipe::label_smoothing, "X", "share of the target spread over all classes",
        zero_to_below_one, goes_with("loss", "cross_entropy")),

    key(Section::data, "data", &Recipe::data, "FOLDER", "set of shards, made by lockstep shard", by_default("none"),
        instead_of("synthetic")),
    key(Section::data, "stage", &Recipe::stage, "FOLDER", "copy the set to this folder of each node, and read the copy",
        by_default("none"), goes_with("synthetic", "false")),
    key(Section::data, "train-split", &Recipe::train_split, "NAME",
        "split to train on; a set of one split needs no name"),
    key(Section::data, "val-split", &Recipe::val_split, "NAME", "split to evaluate on; empty: none", TextRule::any),
    key(Section::data, "synthetic", &Recipe::synthetic, "", "make samples from the seed, without a set",
        instead_of("data")),
    key(Section::data, "synthetic-samples", &Recipe::synthetic_samples, "N", "samples of an epoch", at_least(1),
        by_default("the kind's own"), goes_with("synthetic", "true"), instead_of("synthetic-steps")),
    key(Section::data, "synthetic-steps", &Recipe::synthetic_steps, "N", "batches of an epoch, instead", at_least(1),
        by_default("none"), goes_with("synthetic", "true"), instead_of("synthetic-samples")),
    key(Section::data, "image-size", &Recipe::image_size, "N", "side of synthetic images", from_to(1, 4096),
        goes_with("model", resnets)),
    key(Section::data, "augment", &Recipe::augment, "STEPS",
        "crop:SIZE[:PADDING],flip[:P],rrcrop:SIZE,normalize:MEAN:STD", TextRule::augmentation, by_default("none")),
    key(Section::data, "val-augment", &Recipe::val_augment, "STEPS",
        "the same for evaluation, with resize:SIZE,centercrop:SIZE", TextRule::augmentation, by_default("none")),
    key(Section::data, "order", &Recipe::order, "O", "keyed: random; blocked: random in windows"),
    key(Section::data, "window-chunks", &Recipe::window_chunks, "N", "order blocked: shuffle within N chunks",
        from_to(1, most_parts), goes_with("order", "blocked")),
    key(Section::data, "drop-last", &Recipe::drop_last, "", "leave out the last batch of an epoch if it is smaller"),
    key(Section::data, "cache", &Recipe::cache, "C", "keep the set in memory, once per node"),
    key(Section::data, "loader-threads", &Recipe::loader_threads, "N", "more threads of each rank for loading",
        from_to(0, 256), by_default("spare cores, at most 8")),

    key(Section::batches, "batch", &Recipe::batch, "N", "samples of a step, over all ranks", from_to(1, most_samples)),
    key(Section::batches, "bn-group", &Recipe::bn_group, "N", "samples of a batch normalization group",
        from_to(1, most_samples), by_default("the batch"), goes_with("model", resnets)),
    key(Section::batches, "accumulate", &Recipe::accumulate, "N", "compute a batch in N parts, to save memory",
        from_to(1, most_parts)),
    key(Section::batches, "epochs", &Recipe::epochs, "N", "passes over the training split", at_least(1),
        instead_of("samples")),
    key(Section::batches, "samples", &Recipe::samples, "N", "length in samples, rounded up to batches", at_least(1),
        by_default("none"), instead_of("epochs")),
    key(Section::batches, "max-steps", &Recipe::max_steps, "N", "stop after N steps; schedules do not change",
        at_least(1), by_default("none")),
    key(Section::batches, "evaluate-every", &Recipe::evaluate_every, "N",
        "evaluate every N epochs; 0: after the last only", at_least(0)),
    key(Section::batches, "save-every", &Recipe::save_every, "N",
        "checkpoint every N epochs, \"N samples\" or \"30 min\"; 0: only when stopped", at_least(0)),
    key(Section::batches, "seed", &Recipe::seed, "N", "seed of weights, order, augmentation and dropout", at_least(0)),

    key(Section::optimizer, "optimizer", &OptimizerSpec::kind, "O", ""),
    key(Section::optimizer, "lr", &Recipe::lr, "X", "learning rate", above_zero, by_default("mostly 0.001")),
    key(Section::optimizer, "weight-decay", &OptimizerSpec::weight_decay, "X",
        "added to the gradient, or decoupled from it as in adamw", by_default("the optimizer's")),
    key(Section::optimizer, "momentum", &OptimizerSpec::momentum, "X", "", zero_to_below_one,
        by_default("the optimizer's"), use_of<&optim::Uses::momentum>),
    key(Section::optimizer, "dampening", &OptimizerSpec::dampening, "X", "", from_to(0, 1),
        use_of<&optim::Uses::dampening>),
    key(Section::optimizer, "nesterov", &OptimizerSpec::nesterov, "", "", use_of<&optim::Uses::nesterov>),
    key(Section::optimizer, "beta1", &OptimizerSpec::beta1, "X", "", zero_to_below_one, use_of<&optim::Uses::beta1>),
    key(Section::optimizer, "beta2", &OptimizerSpec::beta2, "X", "", zero_to_below_one, by_default("mostly 0.999"),
        use_of<&optim::Uses::beta2>),
    key(Section::optimizer, "rho", &OptimizerSpec::rho, "X", "", zero_to_below_one, use_of<&optim::Uses::rho>),
    key(Section::optimizer, "eps", &OptimizerSpec::eps, "X", "", from_to(1e-38, 1), by_default("the optimizer's"),
        use_of<&optim::Uses::eps>),
    key(Section::optimizer, "trust", &OptimizerSpec::trust, "X",
        "lars: trust coefficient; scales a step with the layer's norm", above_zero, use_of<&optim::Uses::trust>),
    key(Section::optimizer, "clip-norm", &Recipe::clip_norm, "X", "limit of the norm of all gradients; 0: none"),

    key(Section::schedule, "schedule", &Recipe::schedule, "S", ""),
    key(Section::schedule, "warmup", &Recipe::warmup, "LENGTH", "linear warm-up until LENGTH; 0: none", any_length),
    key(Section::schedule, "warmup-factor", &Recipe::warmup_factor, "X", "share of lr at the start of the warm-up",
        from_to(0, 1)),
    key(Section::schedule, "step-size", &Recipe::step_size, "LENGTH", "step: multiply lr by gamma every LENGTH",
        length_above_zero, goes_with("schedule", "step")),
    key(Section::schedule, "milestones", &Recipe::milestones, "LIST", "multistep: multiply there, such as 30,60,80",
        length_above_zero, by_default("none"), goes_with("schedule", "multistep")),
    key(Section::schedule, "gamma", &Recipe::gamma, "X", "step, multistep", above_zero_to_one,
        goes_with("schedule", "step multistep")),
    key(Section::schedule, "power", &Recipe::power, "X", "polynomial", above_zero, goes_with("schedule", "polynomial")),
    key(Section::schedule, "min-lr", &Recipe::min_lr, "X", "cosine, polynomial: final lr",
        goes_with("schedule", "cosine polynomial")),

    key(Section::machine, "precision", &Recipe::precision, "P", "auto: f32 on hosts, bf16 on GPUs, f16 on older ones"),
    key(Section::machine, "strategy", &Recipe::strategy, "S",
        "ranks divide: zero1 optimizer states, zero2 also gradients, fsdp also parameters; auto: what fits"),
    key(Section::machine, "unit-params", &Recipe::unit_params, "N",
        "least parameters of a unit, which a strategy handles at once: blocks are joined", at_least(1)),
    key(Section::machine, "prefetch", &Recipe::prefetch, "N", "fsdp: units that are gathered before they are needed",
        from_to(0, 2), goes_with("strategy", "fsdp auto")),
    key(Section::machine, "graph", &Recipe::graph, "G", "on GPUs: part of a step that is recorded and replayed"),
    key(Section::machine, "deterministic", &Recipe::deterministic, "",
        "bit-identical on any rank count that divides lanes (GPUs: same count)"),
    key(Section::machine, "lanes", &Recipe::lanes, "N", "parts of a batch, summed in a fixed tree",
        from_to(1, most_parts)),
    key(Section::machine, "threads", &Recipe::threads, "N", "threads of each rank for computing",
        from_to(1, nn::most_threads), by_default("its share of the cores")),
};

bool has_word(std::string_view words, std::string_view word) {
  for (std::size_t begin = 0; begin < words.size();) {
    const std::size_t end = std::min(words.find(' ', begin), words.size());
    if (words.substr(begin, end - begin) == word) return true;
    begin = end + 1;
  }
  return false;
}

}  // namespace

std::string_view title(Section section) noexcept {
  switch (section) {
    case Section::model: return "Model";
    case Section::data: return "Data";
    case Section::batches: return "Batches, and for how long";
    case Section::optimizer: return "Optimizer";
    case Section::schedule: return "Learning rate; LENGTH: epochs, or samples as in '20000 samples'";
    case Section::machine: return "Machine";
  }
  return "";
}

bool Range::has(double value) const noexcept {
  const bool is_above = excludes_least ? value > least : value >= least;
  const bool is_below = excludes_most ? value < most : value <= most;
  return is_above && is_below;
}

std::span<const Key> all_keys() noexcept { return keys; }

std::optional<std::size_t> find_key(std::string_view name) noexcept {
  const auto found = std::find_if(keys.begin(), keys.end(), [name](const Key& key) { return key.name == name; });
  if (found == keys.end()) return std::nullopt;
  return static_cast<std::size_t>(found - keys.begin());
}

std::vector<std::string> key_names() { return core::names_of(keys); }

std::vector<std::string> words_of(const Key& key) {
  return std::visit(
      [&key]<class T, class Whole>(T Whole::*) {
        if constexpr (HasWords<T>) return core::names_of(word_table<T>);
        return key.names != nullptr ? key.names() : std::vector<std::string>{};
      },
      key.member);
}

const Use* find_misfit(const Key& key, const Recipe& recipe) {
  if (key.use.words.empty()) return nullptr;
  const Key& selector = keys[*find_key(key.use.selector)];
  return has_word(key.use.words, to_word(selector, recipe)) ? nullptr : &key.use;
}

}  // namespace lockstep::training

#include "ranks/drawn_recipe.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>
#include <set>

#include "core/flags.hpp"
#include "optim/optimizer_spec.hpp"
#include "parallel/strategy.hpp"
#include "support/lockstep_program.hpp"
#include "training/recipe/keys.hpp"

namespace lockstep::support {
namespace {

/// A kind of network, as small as possible, and the source of its samples. The last takes ten times as long as the
/// others, and is one of twelve draws.
struct Kind {
  const char* recipe;
  const char* always;
  const char* made;  ///< while training
  const char* set;   ///< of `lockstep shard synth`
  bool has_images;
};

constexpr Kind kinds[] = {
    {"toy", "", "--synthetic-samples 110", "toy --samples 110 --val 0.2", false},
    {"digits", "", "--synthetic-samples 53", "digits --samples 110", true},
    {"digits", "", "--synthetic-steps 5", "digits --samples 110", true},
    {"movielens", "", "--synthetic --synthetic-samples 150", "ratings --samples 150 --users 30 --items 40 --val 0.2",
     false},
    {"cifar_resnet18", "--classes 4 --bn-group 2 --drop-last --augment normalize:0.4:0.2",
     "--synthetic --synthetic-steps 2 --image-size 8",
     "images --samples 110 --height 8 --width 8 --channels 3 --classes 4", true},
};

/// Draws words for keys, and keeps those that are chosen.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_{seed} {}

  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  template <class Values>
  const auto& one_of(const Values& values) {
    return values[below(std::size(values))];
  }
  void add(const std::string& words) {
    for (std::string& word : words_of(words)) arguments.push_back(std::move(word));
  }
  void set(const std::string& key, const std::string& value) {
    chosen[key] = value;
    arguments.push_back(value == "true" ? "--" + key : value == "false" ? "--no-" + key : "--" + key + "=" + value);
  }

  std::map<std::string, std::string> chosen{};
  std::vector<std::string> arguments{"train"};

 private:
  std::mt19937_64 random_;
};

/// Whether `key` has an effect, given the chosen ones.
bool fits(const training::Key& key, const std::map<std::string, std::string>& chosen) {
  if (key.use.words.empty()) return true;
  const std::vector<std::string> words = words_of(std::string{key.use.words});
  return std::ranges::find(words, chosen.at(std::string{key.use.selector})) != words.end();
}

/// Whether `key` is set already.
bool contains_flag(const std::vector<std::string>& arguments, const std::string& key) {
  return std::ranges::find(arguments, "--" + key) != arguments.end();
}

/// The set of that kind, made once in `folder`.
std::string make_set(const Kind& kind, const std::string& folder) {
  const std::string path = folder + "/" + kind.recipe;
  if (std::filesystem::exists(path)) return path;
  const Ended made = run_lockstep(words_of("shard synth " + std::string{kind.set} + " --chunk-size 4K --out " + path));
  EXPECT_EQ(made.exit_code, 0) << made.err;
  return path;
}

}  // namespace

const std::vector<DrawnKey>& drawn_keys() {
  static const std::vector<DrawnKey> keys{
      {"name", {}, "a report's title"},
      {"model", {}, "drawn with the recipe"},
      {"cifar-stem", {}, "set by the recipe"},
      {"classes", {}, "drawn with the recipe"},
      {"users", {"30", "41"}},
      {"items", {"40", "53"}},
      {"dropout", {"true", "false"}},
      {"loss", {}, "the model's"},
      {"label-smoothing", {"0", "0.1"}},
      {"data", {}, "drawn with the recipe"},
      {"stage", {}, "drawn with the set"},
      {"train-split", {}, "drawn with the set"},
      {"val-split", {}, "drawn with the set"},
      {"synthetic", {}, "drawn with the recipe"},
      {"synthetic-samples", {}, "drawn with the recipe"},
      {"synthetic-steps", {}, "drawn with the recipe"},
      {"image-size", {}, "drawn with the recipe"},
      {"augment", {"normalize:0.5:0.25", "flip,normalize:0.1:0.2", "crop:28:2,flip:0.3,normalize:0.2:0.3"}},
      {"val-augment", {}, "drawn with the set"},
      {"order", {"keyed", "torch", "blocked", "sequential"}, {}, {"keyed", "blocked", "sequential"}},
      {"window-chunks", {"1", "3", "16"}},
      {"drop-last", {"true", "false"}},
      {"cache", {"auto", "none", "node"}},
      {"loader-threads", {"0", "1", "3"}},
      {"batch", {"32", "48"}},
      {"bn-group", {}, "drawn with the recipe"},
      {"accumulate", {"1", "2"}},
      {"epochs", {"3", "4"}},
      {"samples", {"100", "300"}},
      {"max-steps", {}, "what a test of stopping sets"},
      {"evaluate-every", {"0", "1", "2"}},
      {"save-every", {}, "what a test of stopping sets"},
      {"seed", {"1", "7", "123456789012345"}},
      {"optimizer", core::names_of(optim::all_optimizer_kinds)},
      {"lr", {"0.01", "0.1"}},
      {"weight-decay", {"0", "0.05"}},
      {"momentum", {"0", "0.9"}},
      {"dampening", {"0", "0.3"}},
      {"nesterov", {"true", "false"}},
      {"beta1", {"0.9", "0.5"}},
      {"beta2", {"0.999", "0.9"}},
      {"rho", {"0.9", "0.5"}},
      {"eps", {"1e-8", "1e-3"}},
      {"trust", {"1e-3", "1e-2"}},
      {"clip-norm", {"0", "0.5"}},
      {"schedule", {"constant", "step", "multistep", "cosine", "polynomial"}},
      {"warmup", {"0", "1", "20 samples"}},
      {"warmup-factor", {"0", "0.5"}},
      {"step-size", {"1", "40 samples"}},
      {"milestones", {"1,2"}},
      {"gamma", {"0.1", "0.7"}},
      {"power", {"1", "2"}},
      {"min-lr", {"0", "0.0001"}},
      {"precision", {"f32", "bf16"}, {}, {"f32", "bf16", "f16"}},
      {"strategy", core::names_of(parallel::strategies_on(false)), {}, {"zero1", "ddp", "zero1"}},
      {"unit-params", {"1", "20000", "100000", "1000000000"}},
      {"prefetch", {"0", "1", "2"}},
      {"graph", {}, "of GPUs", {"off", "compute", "step"}},
      {"deterministic", {}, "always true here: bits are compared"},
      {"lanes", {"4", "8"}},
      {"threads", {}, "1: ranks are threads"},
  };
  return keys;
}

std::vector<std::string> complaints_about(const std::vector<DrawnKey>& keys) {
  std::vector<std::string> complaints;
  std::set<std::string> drawn;
  for (const DrawnKey& key : keys) {
    if (!drawn.insert(key.key).second) complaints.push_back(key.key + " is there twice");
    if (key.values.empty() == key.stays_because.empty())
      complaints.push_back(key.key + " has neither values nor a reason, or has both");
  }
  for (const training::Key& key : training::all_keys())
    if (drawn.erase(std::string{key.name}) == 0)
      complaints.push_back(std::string{key.name} + " is a key that no test of resuming draws");
  for (const std::string& unknown : drawn) complaints.push_back(unknown + " is no key");
  return complaints;
}

DrawnRecipe draw_recipe(std::uint64_t seed, const std::string& folder, DrawFor device) {
  Draw draw{seed};
  const Kind& kind = seed % 12 == 4 ? kinds[std::size(kinds) - 1] : kinds[draw.below(std::size(kinds) - 1)];
  draw.add(kind.recipe);
  draw.add(kind.always);
  draw.chosen["model"] = kind.recipe == std::string{"digits"}           ? "mnist_cnn"
                         : kind.recipe == std::string{"cifar_resnet18"} ? "resnet18"
                                                                        : kind.recipe;
  draw.chosen["loss"] = draw.chosen["model"] == "toy" || draw.chosen["model"] == "movielens" ? "mse" : "cross_entropy";
  const bool is_made = draw.below(2) == 0;
  draw.chosen["synthetic"] = is_made ? "true" : "false";
  if (is_made) {
    draw.add(kind.made);
    draw.arguments.push_back("--val-split=");
  } else {
    draw.add("--no-synthetic --data " + make_set(kind, folder));
    if (draw.below(4) == 0) draw.add("--stage " + folder + "/stage");
    if (draw.below(3) == 0)
      draw.arguments.push_back("--val-split=");
    else if (kind.has_images)
      draw.add("--val-augment normalize:0.5:0.25");
  }
  const auto values_of = [device](const DrawnKey& key) -> const std::vector<std::string>& {
    return device == DrawFor::gpus && !key.gpu_values.empty() ? key.gpu_values : key.values;
  };
  // Strategies of GPUs have their turns, below.
  for (const std::string selector : {"optimizer", "schedule", "order", "strategy"})
    for (const DrawnKey& key : drawn_keys())
      if (key.key == selector && (device == DrawFor::hosts || selector != "strategy"))
        draw.set(selector, draw.one_of(values_of(key)));
  std::uint64_t turn = seed;  // values for GPUs: each in 3 draws, each pair of two keys in 9
  for (const DrawnKey& drawn : drawn_keys()) {
    const training::Key& key = training::all_keys()[*training::find_key(drawn.key)];
    const std::vector<std::string>& values = values_of(drawn);
    if (values.empty() || draw.chosen.contains(drawn.key) || !fits(key, draw.chosen)) continue;
    if (drawn.key == "augment" && !kind.has_images) continue;
    if (contains_flag(draw.arguments, drawn.key) || draw.chosen.contains(std::string{key.instead_of})) continue;
    const bool is_rare = !key.use.words.empty();     // only one optimizer, schedule or order uses it
    const bool is_too_large = drawn.key == "batch";  // in recipes, for sets as small as these
    if (device == DrawFor::gpus && !drawn.gpu_values.empty()) {
      draw.set(drawn.key, values[turn % values.size()]);
      turn += seed / values.size();
    } else if (is_rare || is_too_large || draw.below(2) == 0) {
      draw.set(drawn.key, draw.one_of(values));
    }
  }
  // Keys that exclude one another.
  if (draw.chosen["nesterov"] == "true") draw.add("--momentum 0.9 --dampening 0");
  if (draw.chosen["samples"] == "100" && draw.chosen["warmup"] == "1")
    draw.add("--warmup 0");  // longer than 100 samples
  draw.add("--deterministic --threads 1 --digest");
  if (device == DrawFor::gpus) draw.add("--device cuda");
  DrawnRecipe recipe{
      .arguments = std::move(draw.arguments), .chosen = std::move(draw.chosen), .rank_counts = {1, 2, 4}};
  if (recipe.chosen["order"] == "torch") recipe.rank_counts = {1};  // it distributes samples by rank
  return recipe;
}

DrawnRecipe DrawnRecipe::by(const std::string& strategy) const {
  DrawnRecipe other = *this;
  other.chosen["strategy"] = strategy;
  for (const training::Key& key : training::all_keys())
    if (key.use.selector == "strategy" && !fits(key, other.chosen))
      std::erase_if(other.arguments, [&](const std::string& argument) {
        return argument.starts_with("--" + std::string{key.name} + "=");
      });
  other.arguments.push_back("--strategy=" + strategy);
  return other;
}

std::string DrawnRecipe::text() const {
  std::string text = "lockstep train";
  for (const std::string& argument : arguments)
    text += argument.empty() || argument.find(' ') != std::string::npos ? " '" + argument + "'" : " " + argument;
  return text;
}

}  // namespace lockstep::support

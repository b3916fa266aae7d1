// A training run as plain data, made from defaults, recipe file and command line.
// Invariant: a resolved recipe does not contradict itself; unused keys have their defaults; the rank count is not part
// of it.
// Used by `lockstep train`; keys.cpp is the one table of its keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/flags.hpp"
#include "data/load/loader.hpp"
#include "data/load/sampler.hpp"
#include "nn/executor.hpp"
#include "optim/optimizer_spec.hpp"
#include "optim/schedule.hpp"
#include "parallel/strategy.hpp"
#include "runtime/device_traits.hpp"
#include "training/recipe/setting.hpp"

namespace lockstep::training {

/// A length of training: passes over the training set, samples, or time (of `save_every` only).
struct Length {
  enum class Unit { epochs, samples, seconds };
  double value = 0;
  Unit unit = Unit::epochs;

  /// The number of whole samples, with `n_epoch_samples` per epoch; none for a time.
  [[nodiscard]] std::uint64_t samples(std::uint64_t n_epoch_samples) const noexcept;
  bool operator==(const Length&) const = default;
};

using parallel::Strategy;

/// The part of a step that is recorded and replayed on a GPU.
enum class Graph { step, compute, off };

/// Members are the keys of a recipe file, with underscores for hyphens; keys.cpp explains each. Values with a fixed set
/// of words have these in words.hpp; `model` names a row of a table.
struct Recipe {
  std::string name{};

  std::string model{};
  bool cifar_stem = false;
  std::uint64_t classes = 0;  ///< 0: as many as in the set
  std::uint64_t users = 0;    ///< 0: as many as in the set, like items
  std::uint64_t items = 0;
  bool dropout = true;
  nn::Loss loss = nn::Loss::cross_entropy;
  double label_smoothing = 0;

  std::string data{};
  std::string stage{};  ///< folder of each node to copy the set to; empty: none
  std::string train_split = "train";
  std::string val_split = "val";  ///< empty: no evaluation
  bool synthetic = false;
  std::uint64_t synthetic_samples = 0;  ///< per epoch; 0: by synthetic_steps, or else the default of the kind
  std::uint64_t synthetic_steps = 0;
  std::uint64_t image_size = 224;
  std::string augment{};  ///< as for data::parse_augment
  std::string val_augment{};
  data::Order order = data::Order::keyed;
  std::uint64_t window_chunks = 16;
  bool drop_last = false;
  data::Cache cache = data::Cache::automatic;
  int loader_threads = -1;  ///< -1: the spare cores; none if computing uses them all (threads 0)

  std::uint64_t batch = 32;          ///< of all ranks together
  std::uint64_t bn_group = 0;        ///< 0: the model has no batch normalization
  std::uint64_t accumulate = 1;      ///< parts of a batch
  std::uint64_t epochs = 10;         ///< 0: samples is used instead
  std::uint64_t samples = 0;         ///< 0: epochs is used instead
  std::uint64_t max_steps = 0;       ///< 0: no limit; never changes the schedule
  std::uint64_t evaluate_every = 1;  ///< epochs; 0: after the last only
  Length save_every{};               ///< checkpoints; 0: only when the run stops
  std::uint64_t seed = 1;

  optim::OptimizerSpec optimizer{};  ///< its numbers are keys of their own
  double lr = 1e-3;
  double clip_norm = 0;  ///< 0: no clipping

  optim::ScheduleKind schedule = optim::ScheduleKind::constant;
  Length warmup{};
  double warmup_factor = 0.01;
  Length step_size{.value = 1};
  std::vector<Length> milestones{};
  double gamma = 0.1;
  double power = 1;
  double min_lr = 0;

  std::optional<nn::Precision> precision{};          ///< nothing: auto, which train/open_device.hpp decides
  std::optional<Strategy> strategy = Strategy::ddp;  ///< nothing: auto, which setup decides by the memory that is left
  std::uint64_t unit_params = 100'000;               ///< that a unit has at least, where blocks can be joined
  std::uint64_t prefetch = 1;                        ///< units that fsdp gathers in advance
  Graph graph = Graph::step;
  bool deterministic = false;
  runtime::DeviceTraits device{};  ///< not a key: set by settle(), until then those of a host
  std::uint64_t lanes = 4;
  int threads = 0;  ///< of a rank; 0: its share of the cores

  /// Until `auto` is decided, the one that divides least.
  [[nodiscard]] Strategy strategy_or_least() const noexcept { return strategy.value_or(Strategy::ddp); }

  /// Whether a batch is divided into lanes, so that bits do not depend on the number of ranks.
  [[nodiscard]] bool has_lanes() const noexcept { return deterministic && device.adds_lanes; }

  bool operator==(const Recipe&) const = default;
};

/// A recipe and the origin of each of its values, in the order of all_keys().
struct ResolvedRecipe {
  std::string path{};  ///< of its file
  Recipe recipe{};
  std::vector<Origin> origins{};
};

/// What a command line says about the recipe.
struct RecipeWords {
  std::string recipe{};                ///< a name, or a path that ends in .toml
  std::vector<std::string> numbers{};  ///< "50", "10": epochs, save-every
  std::vector<Setting> settings{};
};

/// Where texts of the help of training begin.
inline constexpr std::size_t help_column = 28;

/// Declares a flag for each key; parsing fills `words`, which must outlive `flags`.
void declare_keys(core::Flags& flags, RecipeWords& words);
/// Also declares RECIPE and the numbers after it.
void declare_recipe(core::Flags& flags, RecipeWords& words);

/// Reads the recipe file and merges defaults, file and command line. Throws core::Error (usage) that names flag, or
/// file, line and column.
[[nodiscard]] ResolvedRecipe resolve_recipe(const RecipeWords& words);

/// The same for a recipe's text; messages call it `file`.
[[nodiscard]] ResolvedRecipe resolve_text(std::string_view text, const std::string& file, const RecipeWords& words);

/// The recipe as TOML, with the origin of each value as a comment; reading it gives the same Recipe.
[[nodiscard]] std::string print_config(const ResolvedRecipe& resolved);

/// The recipe as the text of a JSON object, for run.json.
[[nodiscard]] std::string recipe_json(const Recipe& recipe);

/// The part of `lockstep train --help` about examples, recipes and keys.
[[nodiscard]] std::string recipe_help();

/// Throws core::Error (usage) if the recipe names no data to train on, which is the only check that resolving omits.
void require_data(const Recipe& recipe);

}  // namespace lockstep::training

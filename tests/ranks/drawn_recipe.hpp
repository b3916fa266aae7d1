// Recipes drawn by a seed from a table of everything that a recipe can set.
// Invariant: every key of the recipe is in the table, with values to draw from or with the reason why it stays.
// The same seed gives the same recipe.
// Used by the tests of resuming and of rank counts, in tests/ranks and tests/mpi.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace lockstep::support {

/// The values from which a key is drawn.
struct DrawnKey {
  std::string key;
  std::vector<std::string> values;  ///< none: it stays as in the recipe, for the given reason
  std::string stays_because{};
  std::vector<std::string> gpu_values{};  ///< on GPUs, in turn, in place of `values`; none: as on hosts
};

[[nodiscard]] const std::vector<DrawnKey>& drawn_keys();

/// Returns what is wrong with a table: a key of the recipe that is missing, and the like; nothing if it is complete.
[[nodiscard]] std::vector<std::string> complaints_about(const std::vector<DrawnKey>& keys);

/// A drawn recipe as arguments of `lockstep train`.
struct DrawnRecipe {
  std::vector<std::string> arguments{};
  std::map<std::string, std::string> chosen{};  ///< values by key
  std::vector<int> rank_counts{};               ///< with the same bits

  /// The same by another strategy, without keys that have no effect there.
  [[nodiscard]] DrawnRecipe by(const std::string& strategy) const;
  [[nodiscard]] std::string text() const;
};

enum class DrawFor { hosts, gpus };

/// `folder`: where sets are made, once for each kind of network. Runs are deterministic, by one thread a rank.
[[nodiscard]] DrawnRecipe draw_recipe(std::uint64_t seed, const std::string& folder, DrawFor device = DrawFor::hosts);

}  // namespace lockstep::support

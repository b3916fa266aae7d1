// Recipes drawn by a seed from a table of everything that a recipe can set.
// Invariant: every key of the recipe is in the table, with values to draw from or with the reason why it is fixed. The
// same seed gives the same recipe.
// Used by the tests of resuming and of rank counts.
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
};

[[nodiscard]] const std::vector<DrawnKey>& drawn_keys();

/// A drawn recipe as arguments of `lockstep train`.
struct DrawnRecipe {
  std::vector<std::string> arguments{};
  std::map<std::string, std::string> chosen{};  ///< values by key
  std::vector<int> rank_counts{};               ///< with the same bits

  [[nodiscard]] std::string text() const;
};

/// `folder`: where sets of shards are made, once for each kind of network. Deterministic, with one thread per rank.
[[nodiscard]] DrawnRecipe draw_recipe(std::uint64_t seed, const std::string& folder);

}  // namespace lockstep::support

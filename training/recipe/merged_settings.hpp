// Settings of all levels, merged: defaults, recipe file, command line.
// Invariant: the order of settings within a level does not matter; no written setting is silently ignored.
// Used by the parts of training/recipe/recipe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "training/recipe/keys.hpp"

namespace lockstep::training {

class MergedSettings {
 public:
  /// `path` of the recipe file; its stem is the name if no other is given.
  explicit MergedSettings(std::string path);

  /// Applies settings of one level, which must not be lower than the previous one. Throws core::Error (usage) for a key
  /// that is unknown, given twice, or given together with one that excludes it, and for a value that does not fit.
  void put(const std::vector<Setting>& settings);

  /// Fills in what follows from model and optimizer. Then keys without effect get their defaults; they are refused if
  /// they were given in the level that makes them ineffective, or later. Throws like check_recipe().
  [[nodiscard]] ResolvedRecipe resolve() &&;

 private:
  void put(const Setting& setting);
  void make_void(std::string_view name, const Setting& by);
  bool follow(std::string_view name, std::string_view selector);
  void fill_defaults();
  void settle_unused();

  ResolvedRecipe resolved_{};
};

}  // namespace lockstep::training

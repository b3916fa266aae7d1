// The command line of `lockstep doctor`.
// Invariant: members are named like the flags.
// Used by all of training/doctor.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "training/recipe/recipe.hpp"

namespace lockstep::training::doctor {

struct Request {
  std::string data{};  ///< from the recipe, if not given
  std::string val{};
  std::string checkpoints{};
  std::uint64_t n_checkpoints = 1;
  std::string recipe_word{};
  std::optional<Recipe> recipe{};  ///< resolved, with `data`
  std::string device = "auto";     ///< host, cuda
  bool shares_gpu = false;
  std::string json{};
  int expect_ranks = 0;             ///< 0: not given
  std::filesystem::path root{"/"};  ///< where /sys, /proc and /dev are
};

}  // namespace lockstep::training::doctor

// Whether a resumed run is bit-identical to an uninterrupted one, and on which numbers of ranks.
// Invariant: a pure function of recipe, rank count and changes; the tests of resuming check runs against it.
// Used by the start of a run, run.json and --verify-resume.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "training/recipe/recipe.hpp"

namespace lockstep::training {

/// On which numbers of ranks a resumed run is bit-identical.
enum class SameBits {
  any_ranks,   ///< on any number that the recipe can be divided among
  same_ranks,  ///< only on the number of the interrupted run
  none,        ///< on none: the order of sums is not fixed
};
[[nodiscard]] std::string_view name(SameBits same_bits) noexcept;

struct ResumePromise {
  SameBits same_bits = SameBits::none;
  std::string text{};  ///< for users: "bit-identical to an uninterrupted run, but only on 4 ranks"
};

/// A key of the recipe, or the number of ranks, that a run has changed since its checkpoint.
struct Change {
  std::string key{}, then{}, now{};  ///< "lanes", "4", "8"
};

/// `changes`: differences between a resumed run and the one that wrote the checkpoint; of free keys, only those that
/// change bits.
[[nodiscard]] ResumePromise resume_promise(const Recipe& recipe, int n_ranks, const std::vector<Change>& changes = {});

/// Returns another number of ranks with the same bits: the largest smaller one, else the smallest larger one; 0 if
/// there is none. Assumes that the recipe is deterministic.
[[nodiscard]] int other_ranks(const Recipe& recipe, int n_ranks);

}  // namespace lockstep::training

// What a resumed run has in common with one that was never interrupted.
// Invariant: a pure function of recipe and rank count; the tests of resuming hold runs to it.
// Used by the start of a run, run.json and --verify-resume.
#pragma once

#include <string>
#include <string_view>

#include "training/recipe/recipe.hpp"

namespace lockstep::training {

/// On which numbers of ranks a resumed run ends with the same bits.
enum class SameBits {
  any_ranks,   ///< any to which the recipe can be dealt
  same_ranks,  ///< that of the first part alone
  none,        ///< sums are made in another order
};
[[nodiscard]] std::string_view name(SameBits same_bits) noexcept;

struct ResumePromise {
  SameBits same_bits = SameBits::none;
  std::string text{};  ///< for users: "the same bits on any number of ranks that divides its 8 lanes"
};

[[nodiscard]] ResumePromise resume_promise(const Recipe& recipe, int n_ranks);

/// Returns another number of ranks that gives the same bits: the most that are fewer, else the fewest that are more;
/// 0 if there is none. Takes the recipe as deterministic.
[[nodiscard]] int other_ranks(const Recipe& recipe, int n_ranks);

}  // namespace lockstep::training

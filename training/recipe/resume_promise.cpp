#include "training/recipe/resume_promise.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "training/recipe/cuts.hpp"

namespace lockstep::training {

std::string_view name(SameBits same_bits) noexcept {
  switch (same_bits) {
    case SameBits::any_ranks: return "any_ranks";
    case SameBits::same_ranks: return "same_ranks";
    case SameBits::none: break;
  }
  return "none";
}

ResumePromise resume_promise(const Recipe& recipe, int n_ranks, const std::vector<Change>& changes) {
  if (!recipe.deterministic)
    return {SameBits::none,
            "may differ in the last bits from an uninterrupted run, because the order of sums is not fixed; "
            "--deterministic makes it bit-identical"};
  if (!changes.empty()) {
    const Change& first = changes.front();
    const std::string more = changes.size() == 1 ? "" : fmt::format("; {} more changed", changes.size() - 1);
    return {SameBits::none,
            fmt::format("may differ in the last bits from an uninterrupted run, because {} was {}, and is "
                        "now {}{}",
                        first.key, first.then, first.now, more)};
  }
  constexpr std::string_view identical = "bit-identical to an uninterrupted run, ";
  const std::string only = fmt::format("{}but only on {} rank{}", identical, n_ranks, n_ranks == 1 ? "" : "s");
  if (!recipe.device.adds_lanes) return {SameBits::same_ranks, only + " with GPUs of the same kind"};
  if (other_ranks(recipe, n_ranks) == 0) return {SameBits::same_ranks, only};
  return {SameBits::any_ranks,
          fmt::format("{}on any number of ranks that divides the {} lanes", identical, recipe.lanes)};
}

int other_ranks(const Recipe& recipe, int n_ranks) {
  const auto fits = [&](int n) { return !core::complaint_of([&] { check_ranks(recipe, n); }); };
  for (int n = n_ranks - 1; n > 0; --n)
    if (fits(n)) return n;
  for (int n = n_ranks + 1; static_cast<std::uint64_t>(n) <= recipe.lanes; ++n)
    if (fits(n)) return n;
  return 0;
}

}  // namespace lockstep::training

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

ResumePromise resume_promise(const Recipe& recipe, int n_ranks) {
  if (!recipe.deterministic)
    return {SameBits::none, "the same but for the order of sums; --deterministic gives the same bits"};
  const std::string as_many = fmt::format("the same bits on {} rank{}", n_ranks, n_ranks == 1 ? "" : "s");
  if (recipe.is_on_device) return {SameBits::same_ranks, as_many + " with GPUs of the same kind"};
  if (other_ranks(recipe, n_ranks) == 0) return {SameBits::same_ranks, as_many};
  return {SameBits::any_ranks,
          fmt::format("the same bits on any number of ranks that divides its {} lanes", recipe.lanes)};
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

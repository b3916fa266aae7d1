// A made need of memory.
// Invariant: parts are equal.
// Used by the tests of memory and of the choice of a strategy.
#pragma once

#include <cstddef>
#include <cstdint>

#include "training/train/memory.hpp"

namespace lockstep::training {

inline constexpr std::uint64_t gb = 1'000'000'000;

/// An arena that no pool shortens.
[[nodiscard]] inline CountKept divided(std::uint64_t arena) {
  return [n = arena / sizeof(float)](const Recipe& recipe, int n_ranks, std::uint64_t n_local) {
    const bool is_by_all = parallel::divides_states(*recipe.strategy);
    return parallel::KeptElements{
        .parameters = n, .gradients = n, .updated = n / (is_by_all ? static_cast<std::uint64_t>(n_ranks) : n_local)};
  };
}

}  // namespace lockstep::training

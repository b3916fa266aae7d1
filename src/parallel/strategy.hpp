// The strategy: what ranks divide among them, and what each keeps whole.
// Invariant: it decides memory and traffic, never results. Enumerators equal the words of the recipe.
// Used by recipes, the dry run and synchronizers, which ask the functions below; nothing else knows one from another.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace lockstep::parallel {

enum class Strategy : std::uint8_t {
  ddp,   ///< whole parameters and states: one copy on each device, or one that the ranks of a node share
  zero1  ///< all ranks of all nodes divide the states of the optimizer, and the update
};
inline constexpr std::array all_strategies{Strategy::ddp, Strategy::zero1};

[[nodiscard]] constexpr std::string_view name(Strategy strategy) noexcept {
  return strategy == Strategy::ddp ? "ddp" : "zero1";
}

/// Whether all ranks divide the states of the optimizer. Otherwise each device, or each node of hosts, has them all.
[[nodiscard]] constexpr bool divides_states(Strategy strategy) noexcept { return strategy != Strategy::ddp; }

/// Those that this version has for a device with memory of its own, or for a host.
[[nodiscard]] constexpr std::span<const Strategy> strategies_on(bool has_own_memory) noexcept {
  return std::span{all_strategies}.first(has_own_memory ? 1 : all_strategies.size());
}
[[nodiscard]] constexpr bool exists_on(bool has_own_memory, Strategy strategy) noexcept {
  return std::ranges::find(strategies_on(has_own_memory), strategy) != strategies_on(has_own_memory).end();
}

/// What a rank keeps, on a device with memory of its own or on a host.
[[nodiscard]] constexpr std::string_view what_is_kept(Strategy strategy, bool has_own_memory) noexcept {
  if (has_own_memory) return "each GPU keeps all parameters, gradients and optimizer states";
  return divides_states(strategy)
             ? "each node keeps all parameters, each rank all gradients, and all ranks divide the optimizer states"
             : "each node keeps all parameters and optimizer states, each rank all gradients";
}

/// Whether `word` is a strategy of other programs that this version does not have.
[[nodiscard]] constexpr bool is_missing_strategy(std::string_view word) noexcept {
  constexpr std::array<std::string_view, 3> words{"zero2", "zero3", "fsdp"};
  return std::ranges::find(words, word) != words.end();
}

}  // namespace lockstep::parallel

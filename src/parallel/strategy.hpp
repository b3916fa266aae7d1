// The strategy: what ranks divide among them, and what each keeps whole.
// Invariant: it decides memory and traffic, never results. Enumerators equal the words of the recipe.
// Used by recipes, the dry run and make_synchronizer(), which alone decides what is made for a strategy.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace lockstep::parallel {

enum class Strategy : std::uint8_t {
  ddp  ///< whole parameters: one copy on each device, or one that the ranks of a node share
};
inline constexpr std::array all_strategies{Strategy::ddp};

[[nodiscard]] constexpr std::string_view name(Strategy strategy) noexcept {
  switch (strategy) {
    case Strategy::ddp: break;
  }
  return "ddp";
}

/// What a rank keeps, on a device with memory of its own or on a host.
[[nodiscard]] constexpr std::string_view what_is_kept(Strategy strategy, bool has_own_memory) noexcept {
  switch (strategy) {
    case Strategy::ddp: break;
  }
  return has_own_memory ? "each GPU keeps all parameters, gradients and optimizer states"
                        : "each node keeps all parameters and optimizer states, each rank all gradients";
}

/// Whether `word` is a strategy of other programs that divides parameters, gradients or states among all ranks.
[[nodiscard]] constexpr bool is_sharding(std::string_view word) noexcept {
  constexpr std::array<std::string_view, 4> words{"zero1", "zero2", "zero3", "fsdp"};
  return std::ranges::find(words, word) != words.end();
}

}  // namespace lockstep::parallel

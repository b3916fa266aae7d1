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

/// Each divides what the one before divides, and more.
enum class Strategy : std::uint8_t {
  ddp,    ///< whole parameters and states: one copy on each device, or one that the ranks of a node share
  zero1,  ///< all ranks of all nodes divide the states of the optimizer, and the update
  zero2,  ///< and the gradients: a rank has whole ones of few units at a time
  fsdp    ///< and the parameters: each device, or node of hosts, has whole ones of few units at a time
};
inline constexpr std::array all_strategies{Strategy::ddp, Strategy::zero1, Strategy::zero2, Strategy::fsdp};

[[nodiscard]] constexpr std::string_view name(Strategy strategy) noexcept {
  switch (strategy) {
    case Strategy::zero1: return "zero1";
    case Strategy::zero2: return "zero2";
    case Strategy::fsdp: return "fsdp";
    case Strategy::ddp: break;
  }
  return "ddp";
}

/// Whether all ranks divide the states of the optimizer. Otherwise each device, or each node of hosts, has them all.
[[nodiscard]] constexpr bool divides_states(Strategy strategy) noexcept { return strategy >= Strategy::zero1; }
/// Whether ranks keep only the sums of their parts of the gradients. Buckets are then units.
[[nodiscard]] constexpr bool divides_gradients(Strategy strategy) noexcept { return strategy >= Strategy::zero2; }
/// Whether nodes, or devices, keep only their parts of the parameters, and gather units when passes need them.
[[nodiscard]] constexpr bool divides_parameters(Strategy strategy) noexcept { return strategy >= Strategy::fsdp; }

/// Those that this version has for a device with memory of its own, or for a host.
[[nodiscard]] constexpr std::span<const Strategy> strategies_on(bool has_own_memory) noexcept {
  return std::span{all_strategies}.first(has_own_memory ? 2 : all_strategies.size());
}
[[nodiscard]] constexpr bool exists_on(bool has_own_memory, Strategy strategy) noexcept {
  return std::ranges::find(strategies_on(has_own_memory), strategy) != strategies_on(has_own_memory).end();
}

/// The strategy that is the same on one node of hosts, whose ranks always divide the states and share parameters.
[[nodiscard]] constexpr Strategy on_one_node(Strategy strategy) noexcept {
  return divides_gradients(strategy) ? Strategy::zero2 : Strategy::ddp;
}

/// What a rank keeps, on a device with memory of its own or on a host.
[[nodiscard]] constexpr std::string_view what_is_kept(Strategy strategy, bool has_own_memory) noexcept {
  if (has_own_memory)
    return divides_states(strategy)
               ? "each GPU keeps all that passes read and all gradients, and all divide the optimizer states"
               : "each GPU keeps all parameters, gradients and optimizer states";
  switch (strategy) {
    case Strategy::zero1:
      return "each node keeps all parameters, each rank all gradients, and all ranks divide the optimizer states";
    case Strategy::zero2:
      return "each node keeps all parameters, and all ranks divide the gradients and the optimizer states";
    case Strategy::fsdp: return "all ranks divide the parameters, the gradients and the optimizer states";
    case Strategy::ddp: break;
  }
  return "each node keeps all parameters and optimizer states, each rank all gradients";
}

}  // namespace lockstep::parallel

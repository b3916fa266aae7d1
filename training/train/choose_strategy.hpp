// The strategy that `auto` means: the least sharding that fits everywhere, by the planned need of memory.
// Invariant: a pure function of rooms and needs; a tenth of each room is kept back. Decided before memory is allocated.
// Used by setup, and by doctor for a recipe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "parallel/strategy.hpp"
#include "runtime/communicator.hpp"
#include "training/recipe/recipe.hpp"
#include "training/train/memory.hpp"
#include "training/train/open_device.hpp"

namespace lockstep::training {

/// Where ranks need memory: a node, a GPU with the ranks that share it, or a limit of a process.
struct MemoryPlace {
  std::string where{};                 ///< "node gpu-03"
  std::uint64_t room = 0;              ///< bytes
  std::vector<std::uint64_t> needs{};  ///< bytes, by strategy
};

struct StrategyChoice {
  parallel::Strategy strategy = parallel::Strategy::ddp;
  std::string why{};
};

/// Chooses among `strategies`, at least one, in the order of what they divide. `sends_less`: the first that divides
/// states sends less than all others, so it comes first. If none fits, it is the one that lacks least, on the place
/// where it lacks most.
[[nodiscard]] StrategyChoice choose_strategy(std::span<const parallel::Strategy> strategies,
                                             std::span<const MemoryPlace> places, bool sends_less);

/// The places of one rank: a GPU, or a node with the limits of a process. `need`: of any strategy.
struct RankRoom {
  std::string host{};
  std::uint64_t n_local = 1;  ///< ranks of its node, or that share its GPU
  std::uint64_t left = 0;     ///< of its node, or of its GPU; 0: unknown
  runtime::LimitsLeft limits{};
  std::uint64_t shared_left = 0;  ///< of /dev/shm; 0: unknown
};
[[nodiscard]] std::vector<MemoryPlace> places_of(const RankRoom& room, const Recipe& recipe, const MemoryNeed& need,
                                                 int n_ranks);

/// Whether strategies that divide states send less: 16-bit weights are gathered instead of gradients.
[[nodiscard]] bool sends_less_if_divided(const Recipe& recipe, int n_ranks) noexcept;

/// Those that may be chosen: without one that divides parameters, if tables of embeddings leave little to divide.
[[nodiscard]] std::span<const parallel::Strategy> eligible_strategies(const Recipe& recipe, const nn::Network& network);

/// Collective, the same on all ranks: for the samples of a rank in a batch, at most `most`.
[[nodiscard]] StrategyChoice choose_strategy(const runtime::Communicator& world, const OpenDevice& place,
                                             const Recipe& recipe, const nn::Network& network, std::uint64_t most);

}  // namespace lockstep::training

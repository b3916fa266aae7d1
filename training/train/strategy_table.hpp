// All strategies of a device beside one another: what each keeps on a rank, and sends in a step.
// Invariant: memory and traffic are planned, never measured; times come from rates that were measured, or are unknown.
// Used by the dry run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "parallel/strategy.hpp"
#include "training/recipe/recipe.hpp"
#include "training/train/link_rate.hpp"
#include "training/train/memory.hpp"

namespace lockstep::training {

struct StrategyRow {
  parallel::Strategy strategy = parallel::Strategy::ddp;
  MemoryNeed need{};                          ///< of a rank
  std::uint64_t peak = 0;                     ///< of the rank that needs most, in bytes
  std::uint64_t sent_bytes = 0;               ///< of a step, all ranks together; between nodes, or between GPUs
  std::optional<std::uint64_t> n_messages{};  ///< nothing if a library hides them
  std::optional<core::Seconds> to_send{};     ///< at the measured rate
};

struct StrategyTable {
  parallel::Strategy chosen = parallel::Strategy::ddp;
  bool is_of_gpus = false;
  bool is_one_pass = true;  ///< gradients of several passes are sent after the last
  std::vector<StrategyRow> rows{};
  std::optional<LinkRate> rate{};           ///< nothing if it was not measured
  std::optional<double> product_gflops{};   ///< of the slowest rank while all compute
  std::optional<core::Seconds> products{};  ///< those of a step, at this rate
};

/// `need`: of the recipe's strategy, for which the rank that needs most has `peak`. A ring over all ranks sends as many
/// bytes as a library's own algorithms at least.
[[nodiscard]] StrategyTable table_of_gpus(const Recipe& recipe, const MemoryNeed& need, int n_ranks,
                                          std::uint64_t peak);

/// At most 100 columns.
[[nodiscard]] std::string strategies_text(const StrategyTable& table);

}  // namespace lockstep::training

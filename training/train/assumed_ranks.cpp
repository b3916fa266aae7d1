#include "training/train/assumed_ranks.hpp"

#include <limits>

#include "comm/transport.hpp"
#include "data/load/loader.hpp"
#include "runtime/memory.hpp"
#include "training/recipe/cuts.hpp"
#include "training/recipe/specs.hpp"
#include "training/train/arena_slots.hpp"
#include "training/train/choose_strategy.hpp"
#include "training/train/memory.hpp"
#include "training/train/model.hpp"

namespace lockstep::training {

void assume_ranks(DryRun& plan, nn::Device& device, const Recipe& recipe, const nn::Network& network,
                  const Batches& batches, int n_ranks) {
  check_ranks(recipe, n_ranks);
  plan.n_ranks = plan.n_nodes = static_cast<std::uint64_t>(n_ranks);
  plan.are_assumed = true;
  plan.most_samples_of_rank =
      data::batch_plan(loader_options(recipe, false, n_ranks), batches.info().n_samples, 0, n_ranks).most();
  Recipe assumed = recipe;
  MemoryNeed need = memory_need(device, assumed, network, plan.most_samples_of_rank, n_ranks, 1);
  const bool has_own_memory = recipe.device.has_own_memory;
  if (!plan.why_strategy.empty()) {
    constexpr std::uint64_t any = std::numeric_limits<std::uint64_t>::max();
    const RankRoom room{.host = "each",
                        .left = plan.of_gpu ? plan.of_gpu->room : runtime::available_memory().value,
                        .limits = {any, any}};
    const StrategyChoice choice =
        choose_strategy(eligible_strategies(assumed, network), places_of(room, assumed, need, n_ranks),
                        sends_less_if_divided(assumed, n_ranks));
    assumed.strategy = choice.strategy;
    plan.why_strategy = choice.why;
    need = with_strategy(need, assumed, n_ranks, 1);
  }
  plan.strategy = assumed.strategy_or_least();
  plan.activation_bytes = need.activations;
  plan.arena_bytes = need.arena;
  plan.shared_bytes = 0;
  if (has_own_memory) {
    plan.memory_bytes = need.of_device();
    plan.gathered_bytes = parallel::divides_states(plan.strategy) ? (need.weights > 0 ? need.weights : need.arena) : 0;
    plan.of_gpu->n_sharing = 1;
    plan.of_gpu->fits = plan.memory_bytes <= plan.of_gpu->room;
    plan.strategies = table_of_gpus(assumed, need, n_ranks, plan.memory_bytes);
    return;
  }
  plan.memory_bytes = need.of_rank();
  const std::uint64_t at_a_time = std::min(need.at_a_time, whole_groups(recipe, 16));
  nn::ExecutorOptions options = executor_options(assumed, at_a_time, n_ranks);
  options.is_deterministic = true;  // times nothing
  const auto executor = device.make_executor(network, options);
  plan.strategies = {.chosen = plan.strategy,
                     .rows = rows_of_hosts(assumed, network, slots_of(network, *executor, assumed),
                                           executor->unit_reads(), comm::one_rank_each(n_ranks), need)};
  for (StrategyRow& row : plan.strategies.rows) {
    row.peak = row.need.of_rank();
    if (row.strategy == plan.strategy) plan.network_bytes = row.sent_bytes;
  }
}

}  // namespace lockstep::training

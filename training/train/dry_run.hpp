// The needs of a run: memory, steps, traffic, reading; determined without a step.
// Invariant: the memory of a host is what the process already uses, including arenas, plus what a step would touch
// first.
// Used by the trainer for --dry-run, and by train on GPUs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/registry.hpp"
#include "comm/transport.hpp"
#include "nn/graph/network.hpp"
#include "parallel/sharding.hpp"
#include "runtime/communicator.hpp"
#include "runtime/session.hpp"
#include "runtime/topology.hpp"
#include "runtime/watch/watchdog.hpp"
#include "training/recipe/recipe.hpp"
#include "training/run/options.hpp"
#include "training/run/record.hpp"
#include "training/train/batches.hpp"
#include "training/train/learner.hpp"
#include "training/train/open_device.hpp"
#include "training/train/strategy_table.hpp"

namespace lockstep::training {

struct DryRun {
  std::string model, precision;
  parallel::Strategy strategy = parallel::Strategy::ddp;
  std::string why_strategy{};  ///< as in Setup
  std::string device{};        ///< to_text() of its choice; empty for a host, as expected
  std::uint64_t n_ranks = 1, n_nodes = 1;
  bool are_assumed = false;  ///< the ranks: see assume_ranks()
  std::uint64_t n_parameters = 0;
  std::uint64_t n_multiply_adds = 0;  ///< of one sample, forward
  std::uint64_t n_epoch_steps = 0, n_steps = 0, n_samples = 0;
  std::uint64_t most_samples_of_rank = 0;  ///< of a step
  std::uint64_t memory_bytes = 0;          ///< of the rank that needs most; of its GPU, if it has one
  std::uint64_t activation_bytes = 0, arena_bytes = 0;
  std::uint64_t gathered_bytes = 0;  ///< of a step on GPUs that divide the update: what all get of what passes read
  std::uint64_t network_bytes = 0;   ///< of a step, all ranks together
  std::uint64_t shared_bytes = 0;    ///< of a step, read from other ranks of a node, all ranks together
  std::uint64_t read_bytes = 0;      ///< of an epoch, all ranks together
  /// The memory of the GPU that has least.
  struct OfGpu {
    std::uint64_t room = 0;  ///< without what its libraries need
    std::uint64_t n_sharing = 1;
    bool fits = true;
  };
  std::optional<OfGpu> of_gpu{};  ///< nothing on a host
  StrategyTable strategies{};
};

/// Returns what all nodes send in a step on hosts. `nodes`: of all ranks. `unit_reads`: as of an executor. Slots of
/// `sharding` have the names of parameters. If rows of a table travel, every node sends a row and its place for each id
/// of its samples to each other node; less if ids repeat.
[[nodiscard]] comm::Cost network_traffic(const Recipe& recipe, const nn::Network& network,
                                         const parallel::Sharding& sharding, std::vector<int> nodes,
                                         std::vector<core::Slice> unit_reads = {});

/// Rows for all strategies on hosts, without times and peaks. `nodes`: of all ranks. `need`: of any strategy.
[[nodiscard]] std::vector<StrategyRow> rows_of_hosts(const Recipe& recipe, const nn::Network& network,
                                                     const std::vector<parallel::Slot>& slots,
                                                     const std::vector<core::Slice>& unit_reads,
                                                     const std::vector<int>& nodes, const MemoryNeed& need);

/// A learner that is made only for plan_run() needs at most this many samples of a rank.
inline constexpr std::uint64_t most_tried = 256;

/// Collective: complete on rank 0. `learner`: for all samples of a rank in a batch, or the first most_tried of them.
/// `transport`: its own.
[[nodiscard]] DryRun plan_run(const runtime::Communicator& world, const runtime::Topology& topology,
                              comm::Transport& transport, nn::Device& device, const Recipe& recipe, Batches& batches,
                              Learner& learner, const Goal& goal);

/// Collective: all of --dry-run on GPUs, which allocates GPU memory only if there is enough. Returns the exit code,
/// which is that of the run if there is too little memory.
[[nodiscard]] int describe_on_gpus(const runtime::Session& session, const OpenDevice& place, ResolvedRecipe& resolved,
                                   const RunOptions& options, runtime::Watchdog& watchdog);

[[nodiscard]] std::string dry_run_text(const DryRun& plan);

}  // namespace lockstep::training

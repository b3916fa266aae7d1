// What training works with, created and checked before the first step: data, network, learner, goal.
// Invariant: anything that does not fit is refused on all ranks, before memory is allocated if possible.
// Used by the trainer.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/device_plan.hpp"
#include "comm/transport.hpp"
#include "core/units.hpp"
#include "metrics/phase_timers.hpp"
#include "nn/device.hpp"
#include "optim/schedule.hpp"
#include "runtime/communicator.hpp"
#include "runtime/gpu_choice.hpp"
#include "runtime/topology.hpp"
#include "training/recipe/goal.hpp"
#include "training/recipe/recipe.hpp"
#include "training/run/options.hpp"
#include "training/run/record.hpp"
#include "training/train/batches.hpp"
#include "training/train/learner.hpp"
#include "training/train/memory.hpp"
#include "training/train/open_device.hpp"

namespace lockstep::training {

struct Setup {
  OpenBatches batches{};            ///< no training if the run only evaluates
  Goal goal{};                      ///< of training
  std::uint64_t save_interval = 0;  ///< samples between checkpoints; 0: none
  core::Seconds save_time{};        ///< alternative: time between checkpoints; 0: none
  optim::ScheduleSpec schedule{};
  std::unique_ptr<comm::Transport> transport{};
  std::unique_ptr<comm::DeviceGroup> devices{};  ///< null if the host is the device, and for one rank
  std::optional<MemoryCheck> memory{};           ///< the result for the samples of a rank; nothing if not requested
  std::unique_ptr<Learner> learner{};            ///< null in a dry run on GPUs with too little memory
  std::string networks{};                        ///< as in AllConnections
  std::string why_strategy{};                    ///< if the recipe says `auto`, why it means this strategy
  std::vector<std::string> warnings{};

  [[nodiscard]] const Batches& main_batches() const noexcept {
    return batches.training ? *batches.training : *batches.evaluation;
  }
};

/// The threads of this rank: from the recipe, or its share of the cores. Deterministic runs need the same number on any
/// number of ranks, because weight gradients differ in their bits between 1 and 2.
[[nodiscard]] int threads_of(const runtime::Communicator& world, const Recipe& recipe);

/// Collective. All arguments except `options` must outlive it. Decides the strategy if `resolved` says `auto`. Calls
/// `on_progress` periodically, and after each layer of each pass. Throws core::Error (usage), on all ranks or on rank 0
/// only.
[[nodiscard]] Setup set_up(const runtime::Communicator& world, const OpenDevice& place, ResolvedRecipe& resolved,
                           const RunOptions& options, metrics::PhaseTimers& timers,
                           const std::function<void()>& on_progress);

/// Collective: describes what will be trained; complete on rank 0.
[[nodiscard]] StartRecord start_record(const runtime::Communicator& world, const runtime::Topology& topology,
                                       const runtime::DeviceChoice& choice, const Recipe& recipe, const Setup& setup,
                                       const std::string& folder, const std::optional<ResumeRecord>& resumed);

}  // namespace lockstep::training

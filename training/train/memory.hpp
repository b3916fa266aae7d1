// Whether nodes and limits have enough memory for training, before any is allocated.
// Invariant: allocates only what planning the network takes; the forecast is that of --dry-run, within 10 %.
// Used by the trainer.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/error.hpp"
#include "nn/device.hpp"
#include "nn/graph/network.hpp"
#include "parallel/host_places.hpp"
#include "runtime/communicator.hpp"
#include "runtime/memory.hpp"
#include "training/recipe/recipe.hpp"
#include "training/train/open_device.hpp"
#include "training/train/smaller_batch.hpp"

namespace lockstep::training {

/// What a rank of a host keeps, in a run on nodes of `n_local` ranks.
using CountKept = std::function<parallel::KeptElements(const Recipe& recipe, int n_ranks, std::uint64_t n_local)>;

/// Need of one rank, beyond what its process uses once the data are open; in bytes.
struct MemoryNeed {
  std::uint64_t activations = 0;
  std::uint64_t at_a_time = 1;  ///< samples that the activations belong to
  std::uint64_t batch = 1;      ///< greatest number of samples of all ranks in a step
  bool is_of_training = true;   ///< false: only an evaluation, which takes as much of a GPU, and has no parts
  std::uint64_t lane_sums = 0;  ///< of lanes that wait for their other half: see parallel::Lanes
  std::uint64_t arena = 0;      ///< of all parameters
  std::uint64_t weights = 0;    ///< parameters in 16 bits, which only devices have
  CountKept kept{};             ///< on a host

  // The strategy decides these: see with_strategy().
  std::uint64_t states = 0;      ///< of the optimizer
  std::uint64_t parameters = 0;  ///< once per node or device
  std::uint64_t pool = 0;        ///< for parameters of others while needed, once per node or device
  std::uint64_t gradients = 0;   ///< of each rank
  std::uint64_t parts = 0;       ///< of parameters and gradients, which only this rank has
  std::uint64_t copy = 0;        ///< of what it saves in the background

  /// For this rank alone, and for all `n_local` ranks of its node.
  [[nodiscard]] std::uint64_t own() const noexcept { return activations + states + lane_sums + parts + copy; }
  [[nodiscard]] std::uint64_t shared(std::uint64_t n_local) const noexcept {
    return parameters + pool + n_local * gradients;
  }
  /// If it alone used what its node shares.
  [[nodiscard]] std::uint64_t of_rank() const noexcept { return own() + weights + shared(1); }
  [[nodiscard]] std::uint64_t of_device() const noexcept { return of_rank() - copy; }
  [[nodiscard]] std::uint64_t of_node(std::uint64_t n_local) const noexcept {
    return n_local * own() + shared(n_local);
  }
};

/// Throws core::Error (usage) if this process's limit of address space is below what the libraries need, which
/// may end the program if they get none (seen below 240 MB, without libraries for GPUs).
void require_address_space();

/// `n` samples, or slightly fewer: whole groups of batch normalization, at least one.
[[nodiscard]] std::uint64_t whole_groups(const Recipe& recipe, std::uint64_t n) noexcept;

/// Plans the network for this; extrapolates for more than some thousand samples at a time. `most`: samples of a rank in
/// a batch.
[[nodiscard]] MemoryNeed memory_need(nn::Device& device, const Recipe& recipe, const nn::Network& network,
                                     std::uint64_t most, int n_ranks, std::uint64_t n_local);

/// The same need with the strategy of `recipe`, which decides nothing else of what memory_need() has planned.
[[nodiscard]] MemoryNeed with_strategy(MemoryNeed planned, const Recipe& recipe, int n_ranks, std::uint64_t n_local);

/// The planning function of memory_need(). Its arguments must outlive it.
[[nodiscard]] PlanActivations activations_planner(nn::Device& device, const nn::Network& network, int n_ranks);

/// MemoryNeed::kept of a network, for any strategy and any number of ranks.
[[nodiscard]] CountKept count_kept_of(const Recipe& recipe, const nn::Network& network, const nn::Executor& executor);

/// How many states the optimizer has for each parameter.
[[nodiscard]] std::uint64_t n_states(const Recipe& recipe);

/// The bytes that a rank copies for --save-every: its part of parameters and the optimizer's state.
[[nodiscard]] std::uint64_t copy_bytes(const Recipe& recipe, std::uint64_t owned);

/// The size of a checkpoint on disk, within some KiB.
[[nodiscard]] core::Bytes checkpoint_bytes(const Recipe& recipe, const nn::Network& network);

/// Throws core::Error (usage) if `n_local` ranks of `host` need more than is `available` there, or one of them more
/// than its limits leave.
void compare_memory(const Recipe& recipe, const MemoryNeed& need, std::uint64_t n_local, int n_ranks,
                    const std::string& host, std::uint64_t available, const runtime::LimitsLeft& limits);

/// Throws core::Error (system) if parameters and gradients, which the ranks of a node share, do not fit in the
/// `available` bytes of its /dev/shm.
void compare_shared_room(const MemoryNeed& need, std::uint64_t n_local, const std::string& host,
                         std::uint64_t available);

/// GPU memory for ranks that share a GPU.
struct GpuRoom {
  std::uint64_t available;  ///< bytes
  std::uint64_t n_sharing;  ///< ranks

  /// Libraries for a GPU need the rest while they compute.
  [[nodiscard]] std::uint64_t of_all() const noexcept;
  [[nodiscard]] std::uint64_t of_rank() const noexcept { return of_all() / n_sharing; }
};

/// Throws core::Error (usage) if the ranks of `host` with `gpu` need more than it has. Names the largest batch that
/// fits according to `plan`, if the rank with the least memory has `least_of_rank`.
void compare_device_memory(const Recipe& recipe, const MemoryNeed& need, const GpuRoom& gpu,
                           std::uint64_t least_of_rank, int n_ranks, const std::string& host,
                           const PlanActivations& plan);

/// The result of checking each rank's node, or GPU, in its present state.
struct MemoryCheck {
  MemoryNeed need{};
  std::uint64_t of_gpu = 0;             ///< room for the rank and those that share its GPU; 0 on a host
  std::optional<core::Error> misfit{};  ///< the same on all ranks
};

/// Collective.
[[nodiscard]] MemoryCheck check_memory(const runtime::Communicator& world, const OpenDevice& place,
                                       const Recipe& recipe, const nn::Network& network, std::uint64_t most,
                                       bool is_of_training = true);

}  // namespace lockstep::training

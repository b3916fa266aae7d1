// The device of a run: chosen by all ranks together, and opened.
// Invariant: while it lives it is the device of all buffers, streams and networks of this process.
// Used by the trainer.
#pragma once

#include <memory>
#include <optional>

#include "nn/device.hpp"
#include "runtime/communicator.hpp"
#include "runtime/gpu_choice.hpp"
#include "runtime/topology.hpp"
#include "training/recipe/recipe.hpp"

namespace lockstep::training {

struct OpenDevice {
  runtime::Topology topology{};
  runtime::DeviceChoice choice{};
  std::optional<runtime::UseDevice> use{};
  std::unique_ptr<nn::Device> device{};
};

/// Collective. As runtime::choose_device(), but for training: with `automatic` the host, where this program cannot
/// train on GPUs.
[[nodiscard]] runtime::DeviceChoice choose_training_device(const runtime::Communicator& world,
                                                           const runtime::Topology& topology,
                                                           const runtime::DeviceRequest& request);

/// Collective. `n_threads`: of a host. `tunes`: as nn::open_accelerated_device() has it. Throws core::Error (usage or
/// system).
[[nodiscard]] std::unique_ptr<OpenDevice> open_device(const runtime::Communicator& world,
                                                      const runtime::DeviceRequest& request, int n_threads,
                                                      bool tunes = false);

/// What follows for a recipe from where it is computed: what bits depend on, and the precision that "auto" stands for.
/// Throws core::Error (usage) if it is one that a GPU of the run has not.
void settle(Recipe& recipe, const runtime::DeviceChoice& choice);

/// On rank 0: "NVIDIA H200 of each rank", "host: why no GPU"; empty if nobody expects anything else.
[[nodiscard]] std::string to_text(const runtime::DeviceChoice& choice);

}  // namespace lockstep::training

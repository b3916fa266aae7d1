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

/// Collective. Like runtime::choose_device(), for training: with `automatic` the host, if this program cannot train on
/// GPUs.
[[nodiscard]] runtime::DeviceChoice choose_training_device(const runtime::Communicator& world,
                                                           const runtime::Topology& topology,
                                                           const runtime::DeviceRequest& request);

/// Collective. `n_threads`: for a host. `tunes`: as in nn::open_accelerated_device(). Throws core::Error (usage or
/// system).
[[nodiscard]] std::unique_ptr<OpenDevice> open_device(const runtime::Communicator& world,
                                                      const runtime::DeviceRequest& request, int n_threads,
                                                      bool tunes = false);

/// What the device means for a recipe: what bits depend on, and the precision that "auto" stands for. Throws
/// core::Error (usage) for a precision that a GPU of the run lacks.
void settle(Recipe& recipe, const runtime::DeviceChoice& choice);

/// On rank 0: "NVIDIA H200 of each rank", "host: why no GPU"; empty if a host is what everybody expects.
[[nodiscard]] std::string to_text(const runtime::DeviceChoice& choice);

}  // namespace lockstep::training

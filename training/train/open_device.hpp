// The device of a run: all ranks choose it together, and open it.
// Invariant: while it lives, it is the device of all buffers, streams and networks of this process.
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

/// Collective. Like runtime::choose_device(), but for training: `automatic` means the host if this program cannot train
/// on GPUs.
[[nodiscard]] runtime::DeviceChoice choose_training_device(const runtime::Communicator& world,
                                                           const runtime::Topology& topology,
                                                           const runtime::DeviceRequest& request);

/// Opens the accelerator of a choice that is in use; null for the host. Like nn::open_accelerated_device().
[[nodiscard]] std::unique_ptr<nn::Device> open_accelerator(const runtime::DeviceChoice& choice, int n_threads,
                                                           bool tunes = false);

/// Collective. `n_threads`: for a host. `tunes`: as in nn::open_accelerated_device(). Throws core::Error (usage or
/// system).
[[nodiscard]] std::unique_ptr<OpenDevice> open_device(const runtime::Communicator& world,
                                                      const runtime::DeviceRequest& request, int n_threads,
                                                      bool tunes = false);

/// Applies the device to a recipe: its traits, and the precision for "auto". Throws core::Error (usage) for a
/// precision that a GPU of the run lacks.
void settle(Recipe& recipe, const runtime::DeviceChoice& choice);

/// On rank 0: "NVIDIA H200 of each rank", "host: why no GPU"; empty for a host, if that is expected.
[[nodiscard]] std::string to_text(const runtime::DeviceChoice& choice);

}  // namespace lockstep::training

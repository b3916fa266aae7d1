// Arenas, in which the slots of an executor follow one another, and those of an executor whose parameters nobody
// updates.
// Invariant: parameters of OwnArenas keep their values, so their copy in 16 bits stays right.
// Used by self-tests, measurements and tests; in training the memory is the synchronizer's.
#pragma once

#include <span>
#include <vector>

#include "nn/executor.hpp"
#include "runtime/device.hpp"

namespace lockstep::nn {

/// Returns the places of the executor's slots in arenas of arena_elements(); `weights` has weights_bytes().
[[nodiscard]] std::vector<SlotPlace> places_in(const Executor& executor, runtime::DeviceSpan<const float> parameters,
                                               runtime::DeviceSpan<float> gradients,
                                               runtime::DeviceSpan<const std::byte> weights);

class OwnArenas {
 public:
  /// Binds the executor, which must not compute any more when the arenas are gone. `parameters`: the first elements of
  /// the arena, in its order; the others are 0.
  OwnArenas(Executor& executor, std::span<const float> parameters);

  [[nodiscard]] runtime::DeviceSpan<const float> gradients() const noexcept { return gradients_.on_device<float>(); }

 private:
  runtime::Buffer parameters_, gradients_, weights_;
};

}  // namespace lockstep::nn

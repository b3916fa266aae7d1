// The arenas of an executor whose parameters nobody updates.
// Invariant: parameters keep their values, so their copy in 16 bits stays right.
// Used by self-tests, measurements and tests; in training the arenas are the synchronizer's.
#pragma once

#include <span>

#include "nn/executor.hpp"
#include "runtime/device.hpp"

namespace lockstep::nn {

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

// The larger of 0 and each element; NaN stays NaN. GPUs compute it with sums: ops/add/device.cpp.
#pragma once

#include "nn/graph/description.hpp"

namespace lockstep::nn {

struct Relu {
  static constexpr LayerTraits traits{.word = "relu", .is_elementwise = true};

  [[nodiscard]] Description describe(const LayerInputs& inputs) const { return {inputs.numbers()}; }
};

}  // namespace lockstep::nn

// The average of each channel: {channels, height, width} to {channels}.
#pragma once

#include "nn/graph/description.hpp"

namespace lockstep::nn {

struct GlobalAvgPool {
  static constexpr LayerTraits traits{.word = "global_avg_pool"};

  [[nodiscard]] Description describe(const LayerInputs& inputs) const { return {{inputs.image()[0]}}; }
};

}  // namespace lockstep::nn

// {channels, height, width} to {features}, in that order.
#pragma once

#include "nn/graph/description.hpp"

namespace lockstep::nn {

struct Flatten {
  static constexpr LayerTraits traits{.word = "flatten"};

  [[nodiscard]] Description describe(const LayerInputs& inputs) const { return {{n_elements(inputs.image())}}; }
};

}  // namespace lockstep::nn

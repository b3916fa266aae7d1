// The maximum of each window of an image.
#pragma once

#include "nn/graph/description.hpp"

namespace lockstep::nn {

/// Square windows; padding is never the maximum.
struct MaxPool {
  static constexpr LayerTraits traits{.word = "max_pool"};

  std::uint64_t kernel = 2;
  std::uint64_t stride = 2;
  std::uint64_t padding = 0;

  [[nodiscard]] Description describe(const LayerInputs& inputs) const {
    const Shape& in = inputs.image();
    if (2 * padding > kernel)
      inputs.refuse("padding " + std::to_string(padding), "at most half of the kernel, " + std::to_string(kernel));
    return {inputs.slide(in[0], kernel, stride, padding)};
  }
};

}  // namespace lockstep::nn

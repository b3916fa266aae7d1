// A convolution of images.
#pragma once

#include "nn/graph/description.hpp"

namespace lockstep::nn {

/// Square kernels.
struct Conv {
  static constexpr LayerTraits traits{.word = "conv", .is_product = true};

  std::uint64_t n_out = 0;
  std::uint64_t kernel = 3;
  std::uint64_t stride = 1;
  std::uint64_t padding = 0;
  bool has_bias = true;
  Init init = Init::uniform_fan_in;  ///< of the weight

  [[nodiscard]] Description describe(const LayerInputs& inputs) const {
    const std::uint64_t n_in = inputs.image()[0], area = kernel * kernel;
    inputs.expect_some(n_out, "output channels");
    const std::uint64_t fan = init == Init::kaiming_normal_fan_out ? n_out * area : n_in * area;
    Description described{inputs.slide(n_out, kernel, stride, padding),
                          {{"weight", {n_out, n_in, kernel, kernel}, init, fan}}};
    if (has_bias) described.parameters.push_back({"bias", {n_out}, Init::uniform_fan_in, n_in * area});
    return described;
  }
};

}  // namespace lockstep::nn

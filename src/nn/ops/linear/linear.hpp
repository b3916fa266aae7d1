// A matrix product: the features of each row times a weight, plus a bias. GPUs compute it as a convolution:
// ops/conv/device.cpp.
#pragma once

#include "nn/graph/description.hpp"

namespace lockstep::nn {

struct Linear {
  static constexpr LayerTraits traits{.word = "linear", .is_product = true};

  std::uint64_t n_out = 0;
  bool has_bias = true;

  [[nodiscard]] Description describe(const LayerInputs& inputs) const {
    Shape output = inputs.rows();
    const std::uint64_t n_in = std::exchange(output.back(), n_out);
    inputs.expect_some(n_out, "outputs");
    Description described{std::move(output), {{"weight", {n_out, n_in}, Init::uniform_fan_in, n_in}}};
    if (has_bias) described.parameters.push_back({"bias", {n_out}, Init::uniform_fan_in, n_in});
    return described;
  }
};

}  // namespace lockstep::nn

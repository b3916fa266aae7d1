// Batch normalization of the channels of images.
#pragma once

#include "nn/graph/description.hpp"

namespace lockstep::nn {

/// Per channel of an image. Running statistics move by `momentum` towards those of a call: the means and unbiased
/// variances of its groups, averaged by samples.
struct BatchNorm {
  static constexpr LayerTraits traits{.word = "batch_norm"};

  double eps = 1e-5;
  double momentum = 0.1;
  bool has_relu = false;  ///< one node: normalization and ReLU in one pass

  [[nodiscard]] Description describe(const LayerInputs& inputs) const {
    const Shape& in = inputs.image();
    return {.output = in,
            .parameters = {{"weight", {in[0]}, Init::ones}, {"bias", {in[0]}, Init::zeros}},
            .statistics = {{"running_mean", in[0], 0}, {"running_var", in[0], 1}}};
  }
};

}  // namespace lockstep::nn

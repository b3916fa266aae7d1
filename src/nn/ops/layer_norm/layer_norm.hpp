// Layer normalization (Ba, Kiros, Hinton 2016, https://arxiv.org/abs/1607.06450).
#pragma once

#include "nn/graph/description.hpp"

namespace lockstep::nn {

/// Subtracts from the features of each row their mean, divides by their deviation, then scales and shifts each feature.
/// Statistics are float32.
struct LayerNorm {
  static constexpr LayerTraits traits{.word = "layer_norm"};

  double eps = 1e-5;  ///< added to the variance, which is that of all features (not of all but one)

  [[nodiscard]] Description describe(const LayerInputs& inputs) const {
    const Shape& in = inputs.rows();
    return {.output = in,
            .parameters = {{"weight", {in.back()}, Init::ones}, {"bias", {in.back()}, Init::zeros}},
            .statistics = {}};
  }
};

}  // namespace lockstep::nn

// The logarithm of the probabilities of a row's classes; only the last node of a network may be one.
#pragma once

#include "nn/graph/description.hpp"

namespace lockstep::nn {

struct LogSoftmax {
  static constexpr LayerTraits traits{.word = "log_softmax", .output = Content::log_probabilities};

  [[nodiscard]] Description describe(const LayerInputs& inputs) const { return {inputs.rows()}; }
};

}  // namespace lockstep::nn

// The sum of two values of one shape.
#pragma once

#include "nn/graph/description.hpp"

namespace lockstep::nn {

struct Add {
  static constexpr LayerTraits traits{.word = "add", .is_elementwise = true};

  bool has_relu = false;

  [[nodiscard]] Description describe(const LayerInputs& inputs) const {
    const Shape &left = inputs.numbers(0), &right = inputs.numbers(1);
    if (left != right)
      inputs.refuse("a sum of " + to_string(left) + " and " + to_string(right), "two values of one shape");
    return {left};
  }
};

}  // namespace lockstep::nn

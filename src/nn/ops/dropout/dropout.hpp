// In training each element becomes 0 by chance, so that no feature relies on another one.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "nn/graph/description.hpp"

namespace lockstep::nn {

/// In training each element becomes 0 with `probability`, and is else scaled by 1 / (1 - probability).
struct Dropout {
  static constexpr LayerTraits traits{.word = "dropout", .is_elementwise = true};

  double probability = 0.5;

  [[nodiscard]] Description describe(const LayerInputs& inputs) const {
    if (!(probability >= 0 && probability < 1))
      inputs.refuse("probability " + as_text(probability), "0 or more, less than 1");
    return {inputs.numbers()};
  }

  /// A random number below it drops its element.
  [[nodiscard]] std::uint32_t threshold() const {
    return static_cast<std::uint32_t>(std::min(std::floor(probability * 0x1p32), 0x1p32 - 1));
  }
  [[nodiscard]] float factor() const { return static_cast<float>(1 / (1 - probability)); }
};

}  // namespace lockstep::nn

// Features side by side.
#pragma once

#include "nn/graph/description.hpp"

namespace lockstep::nn {

struct Concat {
  static constexpr LayerTraits traits{.word = "concat"};

  [[nodiscard]] Description describe(const LayerInputs& inputs) const {
    std::uint64_t n = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i) n += inputs.features(i)[0];
    inputs.expect_some(n, "values");
    return {{n}};
  }
};

}  // namespace lockstep::nn

// The samples that a network begins with.
// Invariant: a network has one of these layers, its first node.
// Used by Network.
#pragma once

#include "core/error.hpp"
#include "nn/graph/description.hpp"

namespace lockstep::nn {

/// Numbers: features, rows of features, or images.
struct Input {
  static constexpr LayerTraits traits{.word = "input"};

  bool is_pixels = false;  ///< samples are images of uint8 (data::Batch::images), which the device converts to numbers
  Shape shape{};

  [[nodiscard]] Description describe(const LayerInputs& inputs) const {
    if (shape.empty() || shape.size() > 3 || n_elements(shape) == 0)
      inputs.refuse("samples of shape '" + to_string(shape) + "'",
                    "features, rows x features, or channels x height x width");
    core::require(!is_pixels || shape.size() == 3, "an input of pixels has the shape of an image");
    return {shape};
  }
};

/// Integer ids, such as (user, item) or a sequence of tokens.
struct Ids {
  static constexpr LayerTraits traits{.word = "ids", .output = Content::ids};

  std::uint64_t n_columns = 0;

  [[nodiscard]] Description describe(const LayerInputs& inputs) const {
    inputs.expect_some(n_columns, "ids per sample");
    return {{n_columns}};
  }
};

}  // namespace lockstep::nn

// A second copy of a convolution's weights, in the layout and type of a primitive that differ from those of their
// gradient.
// Invariant: the same values, rounded if the type is bfloat16; padding is 0. Layouts are oneDNN's for AVX-512.
// Used by nn/host/layers/conv.
#pragma once

#include <optional>

#include "nn/host/storage.hpp"

namespace lockstep::nn::host {

class WeightsCopy {
 public:
  /// Converts one layout to the other; null if we have no loop for it.
  [[nodiscard]] static std::optional<WeightsCopy> find(const Tensor& from, const Desc& to);
  /// Where it writes.
  void set_target(const Place& place) { to_ = place; }

  void run(const Storage& storage) const;

 private:
  enum class Change : std::uint8_t { transpose, transpose_pairs, pair_rows };

  Place from_{}, to_{};
  Change change_{};
  /// Outputs by inputs, of which a part holds some rows of 16 elements.
  std::size_t n_out_blocks_ = 0, n_in_blocks_ = 0, n_rows_ = 0;
  bool is_input_first_ = false;  ///< the parts of one input block follow each other
};

}  // namespace lockstep::nn::host

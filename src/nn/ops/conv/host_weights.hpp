// A second copy of a convolution's weights, for a primitive whose layout or type differs from that of their gradient.
// Invariant: the same values, rounded if the type is bfloat16; padding is 0. Layouts are oneDNN's for AVX-512.
// Used by ops/conv/host.cpp.
#pragma once

#include <optional>

#include "nn/host/storage.hpp"

namespace lockstep::nn::host {

class WeightsCopy {
 public:
  /// Converts one layout to the other; null if we have no loop for that.
  [[nodiscard]] static std::optional<WeightsCopy> find(const Tensor& from, const Desc& to);
  /// Sets where it writes.
  void set_target(const Place& place) { to_ = place; }

  void run(const Storage& storage) const;

 private:
  enum class Change : std::uint8_t { transpose, transpose_pairs, pair_rows };

  Place from_{}, to_{};
  Change change_{};
  /// Blocks of outputs and of inputs; each part is some rows of 16 elements.
  std::size_t n_out_blocks_ = 0, n_in_blocks_ = 0, n_rows_ = 0;
  bool is_input_first_ = false;  ///< the parts of one input block are consecutive
};

}  // namespace lockstep::nn::host

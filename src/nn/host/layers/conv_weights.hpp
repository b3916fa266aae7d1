// The second layout of a convolution's weights: what computes the gradient of its input wants blocks transposed.
// Invariant: exact copies; a float layout of 16 by 16 blocks, as oneDNN has for AVX-512.
// Used by nn/host/layers/conv.
#pragma once

#include <optional>

#include "nn/host/storage.hpp"

namespace lockstep::nn::host {

class BlockTranspose {
 public:
  /// From one layout to the other; nothing if these are not two such layouts.
  [[nodiscard]] static std::optional<BlockTranspose> find(const Tensor& from, const Desc& to);
  /// Where it writes.
  void set_target(const Place& place) { to_ = place; }

  void run(const Storage& storage) const;

 private:
  Place from_{}, to_{};
  std::size_t n_out_blocks_ = 0, n_in_blocks_ = 0, n_positions_ = 0;
  bool is_input_first_ = false;  ///< the blocks of one input block follow each other
};

}  // namespace lockstep::nn::host

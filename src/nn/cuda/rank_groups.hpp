// Batch normalization whose groups are all ranks' samples of a pass (ExecutorOptions::is_group_of_ranks).
// Invariant: all ranks sum the same arrays in the same order, whatever samples they have.
// Used by nn/cuda: the layer shares what it found, the executor takes part for a rank without samples.
#pragma once

#include <vector>

#include "nn/cuda/kernels/batch_norm_ranks.hpp"
#include "nn/cuda/layers.hpp"

namespace lockstep::nn::cuda {

/// What ranks sum up in the forward pass of a layer: doubles.
[[nodiscard]] constexpr std::size_t shared_elements(std::size_t n_channels) { return 2 * n_channels + 1; }

/// In a device's memory.
struct SharedMoments {
  std::size_t n_channels = 0;
  Moments* moments = nullptr;  ///< of this rank, then of all
  double* shared = nullptr;    ///< shared_elements()
  float* mean = nullptr;
  float* inverse = nullptr;
};

/// Collective over the group, as Hooks::sum() is.
void share_moments(PassContext& pass, const SharedMoments& of, double eps);
void share_gradients(PassContext& pass, std::size_t n_channels, GradientSums* sums);

/// The part of a rank without samples.
class EmptyRank {
 public:
  EmptyRank() = default;
  explicit EmptyRank(const Network& network);

  void forward(PassContext& pass, const Network& network, const std::vector<float*>& statistics) const;
  void backward(PassContext& pass, const Network& network) const;
  [[nodiscard]] std::size_t n_bytes() const noexcept;

 private:
  std::vector<ValueLayout> values_{};  ///< of nodes
  runtime::Buffer moments_{}, shared_{}, mean_{}, inverse_{}, sums_{};
};

}  // namespace lockstep::nn::cuda

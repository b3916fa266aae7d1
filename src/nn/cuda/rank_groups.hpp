// Batch normalization whose groups are all ranks' samples of a pass (ExecutorOptions::is_group_of_ranks).
// Invariant: all ranks sum as many numbers in the same order, whatever samples they have, and always in one place, so
// that what has prepared a sum for one has for all.
// Used by nn/cuda: the layer shares what it found, the executor takes part for a rank without samples.
#pragma once

#include <vector>

#include "nn/cuda/kernels/batch_norm_ranks.hpp"
#include "nn/cuda/layers.hpp"

namespace lockstep::nn::cuda {

/// In a device's memory.
struct SharedMoments {
  std::size_t n_channels = 0;
  double* shared = nullptr;    ///< shared_elements()
  Moments* moments = nullptr;  ///< of this rank, then of all
  float* mean = nullptr;
  float* inverse = nullptr;
};

/// Collective over the group, as Hooks::sum() is.
void share_moments(PassContext& pass, const SharedMoments& of, double eps);
void share_gradients(PassContext& pass, std::size_t n_channels, GradientSums* sums);

/// As the sums of a backward pass, which fit in.
[[nodiscard]] inline GradientSums* as_gradient_sums(double* shared) { return reinterpret_cast<GradientSums*>(shared); }

/// The part of a rank without samples, and where all ranks sum.
class EmptyRank {
 public:
  EmptyRank() = default;
  explicit EmptyRank(const Network& network);

  void forward(PassContext& pass, const Network& network, const std::vector<float*>& statistics) const;
  void backward(PassContext& pass) const;
  /// For any layer of the network.
  [[nodiscard]] double* shared() const { return shared_.on_device<double>().data(); }
  [[nodiscard]] std::size_t n_bytes() const noexcept;

 private:
  std::vector<ValueLayout> values_{};      ///< of nodes
  std::vector<std::size_t> normalized_{};  ///< nodes, as programs come to them
  runtime::Buffer moments_{}, shared_{}, mean_{}, inverse_{};
};

}  // namespace lockstep::nn::cuda

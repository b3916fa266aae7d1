// Batch normalization over the samples of all ranks in a pass (ExecutorOptions::is_group_of_ranks).
// Invariant: all ranks sum equally many numbers in the same order, whatever samples they have, and in one place, so
// that one prepared sum serves all layers.
// Used by device.cpp and nn/cuda: the layer shares its moments, the executor takes part for a rank without samples.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "nn/cuda/layers.hpp"
#include "nn/ops/batch_norm/ranks.hpp"

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

/// The sums of a backward pass use the same memory, which is large enough.
[[nodiscard]] inline GradientSums* as_gradient_sums(double* shared) { return reinterpret_cast<GradientSums*>(shared); }

/// Takes part for a rank without samples, and holds the memory in which all layers sum.
class EmptyRank {
 public:
  EmptyRank() = default;
  explicit EmptyRank(const Network& network);

  /// In the part of the pass in which other ranks compute the node.
  void forward(PassContext& pass, const Network& network, std::size_t node,
               const std::vector<float*>& statistics) const;
  void backward(PassContext& pass, std::size_t node) const;
  /// Serves any layer of the network.
  [[nodiscard]] double* shared() const { return shared_.on_device<double>().data(); }
  [[nodiscard]] std::size_t n_bytes() const noexcept;

 private:
  std::vector<ValueLayout> values_{};                     ///< of nodes
  std::vector<std::optional<std::size_t>> normalized_{};  ///< by node: normalization_at()
  runtime::Buffer moments_{}, shared_{}, mean_{}, inverse_{};
};

}  // namespace lockstep::nn::cuda

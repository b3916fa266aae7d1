// The convolutions of a network as a GPU computes them: NHWC, channels padded so that tensor cores take them.
// Invariant: pure description, for any number of samples; padding channels are 0 and stay 0.
// Used by nn/cuda/cudnn_graph and its tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/dtype.hpp"
#include "nn/network.hpp"

namespace lockstep::nn::cuda {

/// Square kernels.
struct ConvProblem {
  std::string name;  ///< of the node
  std::uint64_t n_samples = 0;
  std::uint64_t height = 0;  ///< of the input
  std::uint64_t width = 0;
  std::uint64_t n_in = 0;  ///< channels as they lie in memory, padding among them
  std::uint64_t n_out = 0;
  std::uint64_t kernel = 1;
  std::uint64_t stride = 1;
  std::uint64_t padding = 0;
  bool needs_input_gradient = true;  ///< not if its input is the network's

  [[nodiscard]] std::uint64_t height_out() const noexcept { return (height + 2 * padding - kernel) / stride + 1; }
  [[nodiscard]] std::uint64_t width_out() const noexcept { return (width + 2 * padding - kernel) / stride + 1; }
};

/// Channels in memory for `n_channels` of a value: a multiple of 8. Of a network's input of up to 4 channels in
/// float16 it is 4, which no plan of cuDNN's pads again, as it does in bfloat16.
[[nodiscard]] std::uint64_t padded_channels(std::uint64_t n_channels, core::DType type, bool is_input) noexcept;

/// In forward order.
[[nodiscard]] std::vector<ConvProblem> convolutions_of(const Network& network, std::uint64_t n_samples,
                                                       core::DType type);

}  // namespace lockstep::nn::cuda

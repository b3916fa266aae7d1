// The products of a network as a GPU computes them: convolutions, and matrix products as convolutions of images of one
// pixel.
// Invariant: pure description, for any number of samples; channels are those of layout.hpp, including padding.
// Used by nn/cuda: the program plans them, implementations of Convolutions compute them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "nn/cuda/kernels/fold.hpp"
#include "nn/cuda/layout.hpp"
#include "nn/graph/network.hpp"

namespace lockstep::nn::cuda {

/// Square kernels.
struct ConvProblem {
  std::string name;             ///< of the node
  std::uint64_t n_samples = 0;  ///< or rows of all samples
  std::uint64_t height = 1;     ///< of the input
  std::uint64_t width = 1;
  std::uint64_t n_in = 0;
  std::uint64_t n_out = 0;
  std::uint64_t kernel = 1;
  std::uint64_t stride = 1;
  std::uint64_t padding = 0;

  [[nodiscard]] std::uint64_t height_out() const noexcept { return (height + 2 * padding - kernel) / stride + 1; }
  [[nodiscard]] std::uint64_t width_out() const noexcept { return (width + 2 * padding - kernel) / stride + 1; }
  /// The sizes of inputs, weights and outputs.
  [[nodiscard]] std::size_t x_elements() const noexcept { return n_samples * height * width * n_in; }
  [[nodiscard]] std::size_t w_elements() const noexcept { return n_out * kernel * kernel * n_in; }
  [[nodiscard]] std::size_t y_elements() const noexcept { return n_samples * height_out() * width_out() * n_out; }
  [[nodiscard]] std::size_t n_elements() const noexcept { return x_elements() + w_elements() + y_elements(); }
};

/// Returns how kernels/fold.hpp computes a convolution of the network's input. Nothing unless it has a stride of 2, at
/// most four channels, images of an even size, and an input that needs no gradient.
[[nodiscard]] std::optional<Fold> fold_of(const Network& network, const Node& node);

/// Everything except the name: "256x56x56x64 by 64x3x3/1+1".
[[nodiscard]] std::string describe(const ConvProblem& problem);

/// The product of a node, folded if possible; nothing if the node has none. `layouts`: layouts_of(network).
[[nodiscard]] std::optional<ConvProblem> problem_of(const Network& network, std::size_t node,
                                                    std::span<const ValueLayout> layouts, std::uint64_t n_samples);

}  // namespace lockstep::nn::cuda

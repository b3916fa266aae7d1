// The gradient of a convolution's weights from the columns of its input, as a 1x1 convolution.
// Invariant: the same sums as oneDNN's own, in another order, and in the same layout: positions of all samples become
// the pixels of one image, and each block of 16 input channels at each place of the kernel becomes 16 channels.
// Used by ops/conv/host.cpp, where it is faster: maps with few positions, for which oneDNN is inefficient.
#pragma once

#include <optional>

#include "nn/host/dnnl_primitives.hpp"

namespace lockstep::nn::host {

class ConvColumns {
 public:
  using Gradient = ConvWeightsDesc;

  /// Handles a convolution without bias. Returns nothing unless channels and weights are in whole blocks of 16 and maps
  /// are small.
  [[nodiscard]] static std::optional<ConvColumns> find(const dnnl::engine& engine, const Desc& src, const Desc& weights,
                                                       const Desc& dst, const Window& window);

  /// The gradient of `weights` from the result of gather(). Its weights are the convolution's, with other dimensions.
  [[nodiscard]] const Gradient& described() const noexcept { return described_; }

  void gather(const std::byte* src, const std::byte* dst, std::byte* columns, std::byte* pixels) const;

  struct Times {
    double own_s;
    double columns_s;
  };
  /// Times it and `gradient`, oneDNN's own.
  [[nodiscard]] Times measure(const dnnl::engine& engine, const Gradient& gradient) const;

 private:
  void gather_columns(const std::byte* src, std::byte* columns, std::size_t sample, std::size_t block) const;

  Gradient described_{};
  std::size_t n_ = 0, n_in_blocks_ = 0, n_out_blocks_ = 0;
  std::ptrdiff_t height_ = 0, width_ = 0, out_height_ = 0, out_width_ = 0;
  std::ptrdiff_t kernel_ = 0, stride_ = 0, padding_ = 0;
  std::size_t pixel_bytes_ = 0;  ///< of 16 channels
};

}  // namespace lockstep::nn::host

// Converts images of uint8 to floats: crop, zero padding, flip, normalization, element type and layout in one pass.
// Invariant: a value depends only on its pixel and comes from a table: the same bits on all machines and threads.
// Used by data/augment/augment.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "core/dtype.hpp"
#include "data/augment/planar.hpp"

namespace lockstep::data {

/// The order of an image in a batch: channels first or last.
enum class ChannelOrder { nchw, nhwc };

/// Rows of pixels of interleaved channels. `row_bytes`: the distance between rows.
struct Pixels {
  std::span<const std::byte> pixels{};
  std::size_t height = 0;
  std::size_t width = 0;
  std::size_t row_bytes = 0;
};

/// The part of an image that is used; pixels outside the image read as 0.
struct Window {
  std::ptrdiff_t top = 0;
  std::ptrdiff_t left = 0;
  std::size_t height = 0;
  std::size_t width = 0;
  bool is_flipped = false;  ///< mirrored left to right
};

/// The numbers for the 256 levels of a channel.
using Levels = std::array<float, 256>;

/// The conversion of images of `channels.size()` channels. Thread-safe.
class Lookup {
 public:
  /// `dtype`: float32, or bfloat16, to which values are rounded.
  Lookup(std::span<const Levels> channels, core::DType dtype, ChannelOrder layout);

  /// The size of one converted image.
  [[nodiscard]] std::size_t n_bytes(std::size_t height, std::size_t width) const noexcept;

  /// `out`: n_bytes() of the window, aligned to its elements. Runs on the calling thread only.
  void apply(const Pixels& image, const Window& window, std::span<std::byte> out) const;

 private:
  using Floats = std::vector<float>;
  using Bfloats = std::vector<core::bfloat16>;

  std::size_t n_channels_;
  ChannelOrder layout_;
  std::variant<Floats, Bfloats> table_;  ///< 256 entries for each channel
  BytePlanes planes_{};                  ///< the same for `planar_`
  ConvertPlanar planar_ = nullptr;       ///< for rows with channels first, if the processor supports it
};

}  // namespace lockstep::data

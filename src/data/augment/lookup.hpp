// Images of uint8 to floats: crop, zero padding, horizontal flip, normalization, element type and layout in one pass.
// Invariant: a value depends on its pixel only and comes from a table: the same bits on all machines and threads.
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

/// Of an image in a batch: channels first or last.
enum class ChannelOrder { nchw, nhwc };

/// Rows of pixels of interleaved channels. `row_bytes`: from one row to the next.
struct Pixels {
  std::span<const std::byte> pixels{};
  std::size_t height = 0;
  std::size_t width = 0;
  std::size_t row_bytes = 0;
};

/// The part of an image that is wanted; what lies outside of the image reads as pixels of 0.
struct Window {
  std::ptrdiff_t top = 0;
  std::ptrdiff_t left = 0;
  std::size_t height = 0;
  std::size_t width = 0;
  bool is_flipped = false;  ///< mirrored left to right
};

/// What each of the 256 levels of a channel becomes.
using Levels = std::array<float, 256>;

/// The conversion of images of `channels.size()` channels. Thread-safe.
class Lookup {
 public:
  /// `dtype`: float32, or bfloat16, to which levels are rounded.
  Lookup(std::span<const Levels> channels, core::DType dtype, ChannelOrder layout);

  /// Of one converted image.
  [[nodiscard]] std::size_t n_bytes(std::size_t height, std::size_t width) const noexcept;

  /// `out`: n_bytes() of the window, aligned as its elements. Runs on the calling thread alone.
  void apply(const Pixels& image, const Window& window, std::span<std::byte> out) const;

 private:
  using Floats = std::vector<float>;
  using Bfloats = std::vector<core::bfloat16>;

  std::size_t n_channels_;
  ChannelOrder layout_;
  std::variant<Floats, Bfloats> table_;  ///< 256 entries for each channel
  BytePlanes planes_{};                  ///< the same for `planar_`
  ConvertPlanar planar_ = nullptr;       ///< for rows of channels first, where the processor can
};

}  // namespace lockstep::data

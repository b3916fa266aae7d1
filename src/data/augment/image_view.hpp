// Images whose pixels are not numbers yet, and their conversion by a GPU, with the bits of Lookup.
// Invariant: a view covers the pixels that Augment converts, in the same order.
// Used by data/augment/augment, data/load/batch and nn/cuda.
#pragma once

#include <cstdint>
#include <span>

namespace lockstep::data {

/// The part of an image that is used; pixels outside the image read as 0.
struct ImageView {
  std::int32_t top = 0;
  std::int32_t left = 0;
  std::uint32_t is_flipped = 0;  ///< 1: mirrored left to right
  bool operator==(const ImageView&) const = default;
};

/// Rows of pixels of interleaved channels of uint8, all images of one size.
struct Images {
  int height = 0;
  int width = 0;
  int n_channels = 0;
  std::span<const float> levels{};     ///< the numbers for the 256 levels of each channel
  std::span<const ImageView> views{};  ///< one for each image
};

}  // namespace lockstep::data

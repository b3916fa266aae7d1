// Which way up a camera was held: the orientation that EXIF has, and pixels turned by it.
// Invariant: whatever the bytes are, nothing beyond them is read; without a tag that can be read it is 1, as stored.
// Used by data/image only.
#pragma once

#include <cstddef>
#include <span>

#include "data/image/image.hpp"

namespace lockstep::data {

/// Of the first APP1 segment with EXIF data, 1 to 8.
[[nodiscard]] int orientation_in_jpeg(std::span<const std::byte> file);
/// Of the chunk eXIf.
[[nodiscard]] int orientation_in_png(std::span<const std::byte> file);

/// Turns and mirrors the pixels as facts.orientation says.
void turn_upright(Image& image);

}  // namespace lockstep::data

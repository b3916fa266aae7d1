// What image files say beside their pixels: orientation by EXIF or XMP, colour profiles, animation.
// Invariant: whatever the bytes are, nothing beyond them is read; without an entry that can be read, orientation is 1,
// as stored.
// Used by data/image only.
#pragma once

#include <cstddef>
#include <span>

#include "data/image/image.hpp"

namespace lockstep::data {

/// Sets orientation, has_other_orientation, has_profile and has_more_pictures (MPF of CIPA DC-007), by the segments
/// before the picture, and has_data_behind.
void look_into_jpeg(std::span<const std::byte> file, ImageFacts& facts);
/// Sets orientation, has_other_orientation and is_animated, by the chunks, and has_data_behind.
void look_into_png(std::span<const std::byte> file, ImageFacts& facts);

}  // namespace lockstep::data

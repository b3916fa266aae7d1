// The decoders behind decode_image, one for each format, and what they share.
// Invariant: each is given a file that begins as its format does, and fills the image or throws ImageError.
// Used by image*.cpp only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "data/image/image.hpp"

namespace lockstep::data {

/// Damaged headers may claim any size: more than this is refused before memory is asked for.
inline constexpr std::uint64_t most_pixels = std::uint64_t{1} << 27;

void decode_jpeg(std::span<const std::byte> file, const DecodeOptions& options, Image& image);
void decode_png(std::span<const std::byte> file, const DecodeOptions& options, Image& image);
void decode_pnm(std::span<const std::byte> file, const DecodeOptions& options, Image& image);

/// From numbers of one or two bytes, the high byte first, of which `image.facts.white` is white, to its pixels. Tells
/// the highest in its facts. Throws ImageError if one is above white.
void scale_to_white(std::span<const std::byte> numbers, std::size_t bytes, Image& image);

/// Makes `image` ready to be filled. Throws ImageError if it is empty or beyond `most_pixels`.
void reshape(Image& image, std::uint64_t height, std::uint64_t width, std::uint64_t channels);

/// Gray to colour, or colour to gray by the weights of ITU-R BT.601; unchanged if it has `channels` already.
void convert_channels(Image& image, std::uint64_t channels);

}  // namespace lockstep::data

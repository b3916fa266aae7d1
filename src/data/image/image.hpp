// Image files to pixels: JPEG, PNG and PPM/PGM by their libraries, and resizing.
// Invariant: pixels are uint8, rows by columns by channels; a damaged or truncated file is an error, never half an
// image.
// Used by the image folder importer and, for encoded sets, the loader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep::data {

struct Image {
  std::uint64_t height = 0;
  std::uint64_t width = 0;
  std::uint64_t channels = 0;  ///< 1 or 3
  std::vector<std::byte> pixels{};
};

/// What went wrong with an image file, in half a sentence ("truncated JPEG", "no image").
struct ImageError {
  std::string reason;
};

/// Decodes to `channels` (1 or 3); formats are told by their first bytes, never by the file's name. `at_least`: a JPEG
/// may be decoded at 1/2, 1/4 or 1/8 of its size as long as its shorter side is not below this (0: full size). Throws
/// ImageError. Thread-safe.
[[nodiscard]] Image decode_image(std::span<const std::byte> file, std::uint64_t channels, std::uint64_t at_least = 0);
/// The same into `image`, whose memory is used again: fresh memory costs as much as a third of the decoding.
void decode_image(std::span<const std::byte> file, std::uint64_t channels, std::uint64_t at_least, Image& image);

/// Antialiased bilinear (triangle filter whose support grows with the reduction), as Pillow's BILINEAR with a `box`,
/// within one level. `box`: top, left, height, width of the source part.
struct Box {
  double top = 0, left = 0, height = 0, width = 0;
};
void resize(std::span<const std::byte> pixels, std::uint64_t height, std::uint64_t width, std::uint64_t channels,
            const Box& box, std::uint64_t out_height, std::uint64_t out_width, std::span<std::byte> out);

}  // namespace lockstep::data

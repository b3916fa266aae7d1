// Image files to pixels: JPEG, PNG and PPM/PGM by their libraries, and resizing.
// Invariant: pixels are uint8, rows by columns by channels, the right way up; a damaged or truncated file is an error,
// never half an image.
// Used by the image folder importer and, for encoded sets, the loader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep::data {

enum class ImageFormat { jpeg, png, pnm };

/// What a file has beyond 8 bits of the channels that are asked for, the right way up.
struct ImageFacts {
  int orientation = 1;                 ///< of EXIF, else of XMP: 1 to 8, 1 for as stored
  bool is_gray = false;                ///< became colour
  bool has_palette = false;            ///< its colours are taken
  bool has_alpha = false;              ///< left out
  bool has_inks = false;               ///< CMYK, converted to colours
  bool has_profile = false;            ///< of ICC, not applied
  bool has_gamma = false;              ///< not that of sRGB, not applied
  bool has_fewer_bits = false;         ///< are significant than are stored
  bool is_animated = false;            ///< the default picture is taken
  bool has_more_pictures = false;      ///< the first is taken
  bool has_data_behind = false;        ///< the end of the picture, not read; never with has_more_pictures
  bool has_other_orientation = false;  ///< of XMP beside that of EXIF
  std::uint32_t white = 255;           ///< the value that became 255
  std::uint32_t highest = 0;           ///< the highest there is; 0 if libpng scaled, or nothing did
  ImageFormat format = ImageFormat::jpeg;
};

struct Image {
  std::uint64_t height = 0;
  std::uint64_t width = 0;
  std::uint64_t channels = 0;  ///< 1 or 3
  std::vector<std::byte> pixels{};
  ImageFacts facts{};
};

/// What went wrong with an image file, in half a sentence ("truncated JPEG", "not an image").
struct ImageError {
  std::string reason;
};

/// White of files of 16 bits that do not say otherwise.
inline constexpr std::uint32_t white_of_16_bits = 65535;

struct DecodeOptions {
  std::uint64_t channels = 3;  ///< 1 or 3
  std::uint64_t at_least = 0;  ///< a JPEG may have 1/2, 1/4 or 1/8 of its size if its shorter side is not below this
  bool keeps_orientation = false;          ///< pixels as stored, whatever EXIF says
  std::uint32_t white = white_of_16_bits;  ///< of files whose white would be that
};

/// Formats are recognised by their first bytes, never by the file's name. Throws ImageError. Thread-safe. The memory of
/// `image` is used again: fresh memory costs as much as a third of the decoding.
void decode_image(std::span<const std::byte> file, const DecodeOptions& options, Image& image);
[[nodiscard]] Image decode_image(std::span<const std::byte> file, std::uint64_t channels, std::uint64_t at_least = 0);

/// Antialiased bilinear (triangle filter whose support grows with the reduction), as Pillow's BILINEAR with a `box`,
/// within one level. `box`: top, left, height, width of the source part.
struct Box {
  double top = 0, left = 0, height = 0, width = 0;
};
void resize(std::span<const std::byte> pixels, std::uint64_t height, std::uint64_t width, std::uint64_t channels,
            const Box& box, std::uint64_t out_height, std::uint64_t out_width, std::span<std::byte> out);

}  // namespace lockstep::data

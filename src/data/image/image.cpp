#include "data/image/image.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.hpp"
#include "data/format/known_formats.hpp"
#include "data/image/image_decoders.hpp"
#include "data/image/image_orientation.hpp"

namespace lockstep::data {
namespace {

template <std::size_t N>
bool begins_with(std::span<const std::byte> file, const std::array<std::uint8_t, N>& magic) {
  return file.size() >= N && std::equal(magic.begin(), magic.end(), file.begin(),
                                        [](std::uint8_t a, std::byte b) { return std::byte{a} == b; });
}

constexpr std::array<std::uint8_t, 3> jpeg_magic{0xff, 0xd8, 0xff};
constexpr std::array<std::uint8_t, 8> png_magic{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
constexpr std::array<std::uint8_t, 2> pgm_magic{'P', '5'};
constexpr std::array<std::uint8_t, 2> ppm_magic{'P', '6'};

// In 16-bit fixed point: 0.299, 0.587, 0.114, which add up to 1.
std::byte luma(std::byte red, std::byte green, std::byte blue) {
  const auto level = [](std::byte value) { return std::to_integer<std::uint32_t>(value); };
  const std::uint32_t sum = level(red) * 19595 + level(green) * 38470 + level(blue) * 7471 + 0x8000;
  return static_cast<std::byte>(sum >> 16);
}

}  // namespace

void reshape(Image& image, std::uint64_t height, std::uint64_t width, std::uint64_t channels) {
  if (height == 0 || width == 0) throw ImageError{"an image without pixels"};
  if (height > most_pixels / width) {
    throw ImageError{fmt::format("a size of {} x {} pixels, more than {} in all", height, width, most_pixels)};
  }
  image.height = height;
  image.width = width;
  image.channels = channels;
  image.pixels.resize(height * width * channels);
}

void convert_channels(Image& image, std::uint64_t channels) {
  if (image.channels == channels) return;
  Image result;
  reshape(result, image.height, image.width, channels);
  const std::uint64_t n_pixels = image.height * image.width;
  const std::byte* in = image.pixels.data();
  std::byte* out = result.pixels.data();
  if (channels == 1) {
    for (std::uint64_t i = 0; i < n_pixels; ++i) out[i] = luma(in[3 * i], in[3 * i + 1], in[3 * i + 2]);
  } else {
    for (std::uint64_t i = 0; i < n_pixels; ++i) out[3 * i] = out[3 * i + 1] = out[3 * i + 2] = in[i];
  }
  result.facts = image.facts;
  result.facts.is_gray = channels == 3;
  image = std::move(result);
}

void scale_to_white(std::span<const std::byte> numbers, std::size_t bytes, Image& image) {
  const std::uint32_t white = image.facts.white;
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    auto value = std::to_integer<std::uint32_t>(numbers[i * bytes]);
    if (bytes == 2) value = value << 8 | std::to_integer<std::uint32_t>(numbers[i * bytes + 1]);
    image.facts.highest = std::max(image.facts.highest, value);
    image.pixels[i] = static_cast<std::byte>((value * 255 + white / 2) / white);
  }
  if (image.facts.highest > white)
    throw ImageError{fmt::format("a value of {}, above the white of {}", image.facts.highest, white)};
}

Image decode_image(std::span<const std::byte> file, std::uint64_t channels, std::uint64_t at_least) {
  Image image;
  decode_image(file, {.channels = channels, .at_least = at_least}, image);
  return image;
}

void decode_image(std::span<const std::byte> file, const DecodeOptions& options, Image& image) {
  core::require(options.channels == 1 || options.channels == 3, "images are decoded to 1 or 3 channels");
  if (file.empty()) throw ImageError{"an empty file"};
  if (begins_with(file, jpeg_magic))
    decode_jpeg(file, options, image);
  else if (begins_with(file, png_magic))
    decode_png(file, options, image);
  else if (begins_with(file, pgm_magic) || begins_with(file, ppm_magic))
    decode_pnm(file, options, image);
  else if (const auto format = recognise_format(file); format && format->name == "PNG")
    throw ImageError{"damaged PNG: its first bytes are wrong, as after a transfer in text mode"};
  else if (format)
    throw ImageError{fmt::format("this is {}: {}", format->name, format->remedy)};
  else
    throw ImageError{"not an image: the first bytes are not those of a JPEG, PNG, PPM or PGM file"};
  if (!options.keeps_orientation) turn_upright(image);
}

}  // namespace lockstep::data

// Image files made in memory by the libraries themselves, as the oracle of the decoders.
// Invariant: what comes back is a valid file of the pixels given; a failing library is a test failure.
// Used by image_test and importers_images_test.
#pragma once

#include <gtest/gtest.h>
#include <png.h>
#include <turbojpeg.h>
#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/rng.hpp"
#include "data/image/image.hpp"

namespace lockstep::data {

using FileBytes = std::vector<std::byte>;

/// Smooth shades with some noise, so that JPEG keeps them nearly as they are.
inline Image make_shades(std::uint64_t height, std::uint64_t width, std::uint64_t channels, std::uint64_t seed = 1) {
  core::Random random{seed};
  Image image{height, width, channels, {}};
  for (std::uint64_t y = 0; y < height; ++y) {
    for (std::uint64_t x = 0; x < width; ++x) {
      for (std::uint64_t c = 0; c < channels; ++c) {
        image.pixels.push_back(
            static_cast<std::byte>(40 + 50 * c + 60 * x / width + 40 * y / height + random.below(4)));
      }
    }
  }
  return image;
}

/// `format` as TurboJPEG names it, such as TJPF_RGB, TJPF_GRAY or TJPF_CMYK.
inline FileBytes make_jpeg(std::span<const std::byte> pixels, std::uint64_t height, std::uint64_t width, int format,
                           int flags = 0) {
  const tjhandle handle = tjInitCompress();
  unsigned char* data = nullptr;
  unsigned long size = 0;
  const int subsampling = format == TJPF_GRAY ? TJSAMP_GRAY : TJSAMP_444;
  EXPECT_EQ(tjCompress2(handle, reinterpret_cast<const unsigned char*>(pixels.data()), static_cast<int>(width), 0,
                        static_cast<int>(height), format, &data, &size, subsampling, 95, flags),
            0)
      << tjGetErrorStr2(handle);
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  FileBytes file(bytes, bytes + size);
  tjFree(data);
  tjDestroy(handle);
  return file;
}

inline FileBytes make_jpeg(const Image& image) {
  return make_jpeg(image.pixels, image.height, image.width, image.channels == 1 ? TJPF_GRAY : TJPF_RGB);
}

/// What a PNG file is to be: libpng's numbers for colour type and interlacing.
struct PngForm {
  int color_type = PNG_COLOR_TYPE_RGB;
  int bit_depth = 8;
  int interlace = PNG_INTERLACE_NONE;
  std::vector<png_color> palette{};
};

/// `rows` as they lie in the file: 16-bit numbers have their high byte first.
inline FileBytes make_png(std::span<const std::byte> rows, std::uint64_t height, std::uint64_t width,
                          const PngForm& form = {}) {
  FileBytes file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  const auto append = [](png_structp writer, png_bytep data, std::size_t n) {
    auto& bytes = *static_cast<FileBytes*>(png_get_io_ptr(writer));
    for (std::size_t i = 0; i < n; ++i) bytes.push_back(std::byte{data[i]});
  };
  png_set_write_fn(png, &file, append, nullptr);
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), form.bit_depth,
               form.color_type, form.interlace, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (!form.palette.empty()) png_set_PLTE(png, info, form.palette.data(), static_cast<int>(form.palette.size()));
  std::vector<png_bytep> pointers;
  const std::size_t row_bytes = rows.size() / height;
  for (std::uint64_t y = 0; y < height; ++y) {
    pointers.push_back(reinterpret_cast<png_bytep>(const_cast<std::byte*>(rows.data() + y * row_bytes)));
  }
  png_write_info(png, info);
  png_write_image(png, pointers.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return file;
}

inline FileBytes make_png(const Image& image) {
  return make_png(image.pixels, image.height, image.width,
                  {.color_type = image.channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB});
}

inline FileBytes bytes_of(std::string_view text) {
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return {bytes, bytes + text.size()};
}

/// EXIF data with an orientation, as cameras write it.
inline std::string make_exif(int orientation, bool is_little_endian = true) {
  const char value = static_cast<char>(orientation);
  if (is_little_endian)
    return std::string{"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0", 18} + value + std::string(7, '\0');
  return std::string{"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0", 19} + value + std::string(6, '\0');
}

/// A JPEG with EXIF data behind an APP0 segment.
inline FileBytes with_exif(const FileBytes& jpeg, const std::string& exif) {
  const std::size_t length = exif.size() + 8;
  FileBytes file{jpeg.begin(), jpeg.begin() + 2};
  const FileBytes head = bytes_of(std::string{"\xff\xe1", 2} + static_cast<char>(length >> 8) +
                                  static_cast<char>(length & 0xff) + std::string{"Exif\0\0", 6} + exif);
  file.insert(file.end(), head.begin(), head.end());
  file.insert(file.end(), jpeg.begin() + 2, jpeg.end());
  return file;
}

enum class ChunkPlace { first, last };

/// A PNG with one more chunk, behind its header or before its end.
inline FileBytes with_chunk(const FileBytes& png, const std::string& name, const std::string& data,
                            ChunkPlace place = ChunkPlace::last) {
  const auto number = [](std::uint32_t value) {
    std::string text;
    for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(value >> shift & 0xff);
    return text;
  };
  const std::string body = name + data;
  const auto crc = crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  const FileBytes chunk =
      bytes_of(number(static_cast<std::uint32_t>(data.size())) + body + number(static_cast<std::uint32_t>(crc)));
  constexpr std::ptrdiff_t header_bytes = 33, end_bytes = 12;
  FileBytes file = png;
  file.insert(place == ChunkPlace::first ? file.begin() + header_bytes : file.end() - end_bytes, chunk.begin(),
              chunk.end());
  return file;
}

/// A PNG with EXIF data before its end.
inline FileBytes with_exif_chunk(const FileBytes& png, const std::string& exif) {
  return with_chunk(png, "eXIf", exif);
}

inline int greatest_difference(std::span<const std::byte> a, std::span<const std::byte> b) {
  EXPECT_EQ(a.size(), b.size());
  int greatest = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    greatest = std::max(greatest, std::abs(std::to_integer<int>(a[i]) - std::to_integer<int>(b[i])));
  }
  return greatest;
}

}  // namespace lockstep::data

#include <fmt/format.h>
#include <turbojpeg.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/handle.hpp"
#include "data/image/image_decoders.hpp"
#include "data/image/image_metadata.hpp"

namespace lockstep::data {
namespace {

struct DecompressorPolicy {
  using Raw = tjhandle;
  static Raw null() noexcept { return nullptr; }
  static void destroy(Raw raw) noexcept { tjDestroy(raw); }
};

using Decompressor = core::UniqueHandle<DecompressorPolicy>;

// One per thread: to make it takes as long as to decode a small image, and it may not be shared.
Decompressor& decompressor() {
  thread_local Decompressor kept;
  if (!kept) kept = Decompressor{tjInitDecompress()};
  if (!kept) core::fail_system("tjInitDecompress failed");
  return kept;
}

struct JpegHeader {
  int width = 0;
  int height = 0;
  int subsampling = 0;
  int colorspace = 0;
};

// After an error the library's state is that of a file half read, which would spoil the next one.
[[noreturn]] void fail(Decompressor& used) {
  const ImageError error{fmt::format("damaged JPEG: {}", tjGetErrorStr2(used.get()))};
  used = Decompressor{};
  throw error;
}

// The strongest reduction whose shorter side is not below `at_least`.
tjscalingfactor reduction(const JpegHeader& header, std::uint64_t at_least) {
  const int shorter = std::min(header.width, header.height);
  for (const int denominator : {8, 4, 2}) {
    const tjscalingfactor factor{1, denominator};
    if (at_least > 0 && static_cast<std::uint64_t>(TJSCALED(shorter, factor)) >= at_least) return factor;
  }
  return {1, 1};
}

// What Adobe's programs write, and so what is found: inks stored inverted, 255 for none.
void convert_inverted_cmyk(Image& image) {
  const std::vector<std::byte> cmyk = image.pixels;
  const std::uint64_t height = image.height, width = image.width;
  reshape(image, height, width, 3);
  for (std::uint64_t i = 0; i < height * width; ++i) {
    const unsigned light = std::to_integer<unsigned>(cmyk[4 * i + 3]);
    for (std::uint64_t c = 0; c < 3; ++c) {
      const unsigned ink = std::to_integer<unsigned>(cmyk[4 * i + c]);
      image.pixels[3 * i + c] = static_cast<std::byte>((ink * light + 127) / 255);
    }
  }
}

}  // namespace

// Any warning of the library is damage: it has made up pixels.
void decode_jpeg(std::span<const std::byte> file, const DecodeOptions& options, Image& image) {
  Decompressor& handle = decompressor();
  const auto* data = reinterpret_cast<const unsigned char*>(file.data());
  const auto size = static_cast<unsigned long>(file.size());
  JpegHeader header;
  if (tjDecompressHeader3(handle.get(), data, size, &header.width, &header.height, &header.subsampling,
                          &header.colorspace) != 0) {
    fail(handle);
  }
  const tjscalingfactor factor = reduction(header, options.at_least);
  const int width = TJSCALED(header.width, factor), height = TJSCALED(header.height, factor);
  const bool is_cmyk = header.colorspace == TJCS_CMYK || header.colorspace == TJCS_YCCK;
  const int format = is_cmyk ? TJPF_CMYK : options.channels == 1 ? TJPF_GRAY : TJPF_RGB;

  reshape(image, static_cast<std::uint64_t>(height), static_cast<std::uint64_t>(width), is_cmyk ? 4 : options.channels);
  const int flags = TJFLAG_STOPONWARNING | TJFLAG_ACCURATEDCT | TJFLAG_LIMITSCANS;
  if (tjDecompress2(handle.get(), data, size, reinterpret_cast<unsigned char*>(image.pixels.data()), width, 0, height,
                    format, flags) != 0) {
    fail(handle);
  }
  if (is_cmyk) convert_inverted_cmyk(image);
  convert_channels(image, options.channels);
  image.facts = {.is_gray = header.colorspace == TJCS_GRAY && options.channels == 3, .has_inks = is_cmyk};
  look_into_jpeg(file, image.facts);
}

}  // namespace lockstep::data

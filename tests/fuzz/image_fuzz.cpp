// Any bytes as an image file: a whole image or an ImageError, nothing else.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "data/image/image.hpp"

namespace {

void decode(std::span<const std::byte> file, std::uint64_t channels, std::uint64_t at_least) {
  try {
    const lockstep::data::Image image = lockstep::data::decode_image(file, channels, at_least);
    if (image.channels != channels || image.height == 0 || image.width == 0) std::abort();
    if (image.pixels.size() != image.height * image.width * channels) std::abort();
  } catch (const lockstep::data::ImageError& error) {
    if (error.reason.empty()) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span file{reinterpret_cast<const std::byte*>(data), size};
  decode(file, 3, 0);
  decode(file, 1, 4);
  return 0;
}

#include "data/image/image_orientation.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace lockstep::data {
namespace {

/// Where pixel (y, x) of the upright image lies in the stored one of `height` rows and `width` columns.
std::pair<std::uint64_t, std::uint64_t> source_of(int orientation, std::uint64_t y, std::uint64_t x,
                                                  std::uint64_t height, std::uint64_t width) {
  switch (orientation) {
    case 2: return {y, width - 1 - x};
    case 3: return {height - 1 - y, width - 1 - x};
    case 4: return {height - 1 - y, x};
    case 5: return {x, y};
    case 6: return {height - 1 - x, y};
    case 7: return {height - 1 - x, width - 1 - y};
    case 8: return {x, width - 1 - y};
    default: return {y, x};
  }
}

}  // namespace

void turn_upright(Image& image) {
  const int orientation = image.facts.orientation;
  if (orientation == 1) return;
  const std::uint64_t height = image.height, width = image.width, pixel = image.channels;
  const bool is_on_its_side = orientation >= 5;
  std::vector<std::byte> turned(image.pixels.size());
  if (is_on_its_side) std::swap(image.height, image.width);
  std::byte* out = turned.data();
  for (std::uint64_t y = 0; y < image.height; ++y)
    for (std::uint64_t x = 0; x < image.width; ++x, out += pixel) {
      const auto [from_y, from_x] = source_of(orientation, y, x, height, width);
      std::copy_n(image.pixels.data() + (from_y * width + from_x) * pixel, pixel, out);
    }
  image.pixels = std::move(turned);
}

}  // namespace lockstep::data

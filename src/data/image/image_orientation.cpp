#include "data/image/image_orientation.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace lockstep::data {
namespace {

using namespace std::string_view_literals;

constexpr int as_stored = 1;

/// Numbers of 1 to 4 bytes at any place; nothing beyond the end.
class Bytes {
 public:
  explicit Bytes(std::span<const std::byte> bytes, bool is_little_endian = false)
      : bytes_{bytes}, is_little_endian_{is_little_endian} {}

  [[nodiscard]] std::optional<std::uint32_t> number(std::uint64_t at, std::uint64_t n) const {
    if (at > bytes_.size() || n > bytes_.size() - at) return std::nullopt;
    std::uint32_t value = 0;
    for (std::uint64_t i = 0; i < n; ++i)
      value = value << 8 | std::to_integer<std::uint32_t>(bytes_[at + (is_little_endian_ ? n - 1 - i : i)]);
    return value;
  }
  [[nodiscard]] bool has(std::uint64_t at, std::string_view text) const {
    return at <= bytes_.size() && text.size() <= bytes_.size() - at &&
           std::equal(text.begin(), text.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(at),
                      [](char c, std::byte b) { return static_cast<std::byte>(c) == b; });
  }
  [[nodiscard]] std::span<const std::byte> from(std::uint64_t at, std::uint64_t n) const {
    const std::uint64_t begin = std::min<std::uint64_t>(at, bytes_.size());
    return bytes_.subspan(begin, std::min<std::uint64_t>(n, bytes_.size() - begin));
  }

 private:
  std::span<const std::byte> bytes_;
  bool is_little_endian_;
};

/// Of a TIFF header and its first directory, as EXIF has them: entries of a tag, a type, a count and a value.
int orientation_in_tiff(std::span<const std::byte> tiff) {
  constexpr std::uint32_t orientation_tag = 0x0112, short_type = 3;
  constexpr std::uint64_t entry_bytes = 12;
  const Bytes order{tiff};
  const bool is_little_endian = order.has(0, "II*\0"sv);
  if (!is_little_endian && !order.has(0, "MM\0*"sv)) return as_stored;
  const Bytes bytes{tiff, is_little_endian};
  const std::uint64_t directory = bytes.number(4, 4).value_or(UINT32_MAX);
  const std::uint64_t n_entries = bytes.number(directory, 2).value_or(0);
  for (std::uint64_t i = 0; i < n_entries; ++i) {
    const std::uint64_t entry = directory + 2 + i * entry_bytes;
    const auto tag = bytes.number(entry, 2);
    if (!tag) return as_stored;
    if (*tag != orientation_tag) continue;
    const auto value = bytes.number(entry + 8, 2);
    const bool is_good = bytes.number(entry + 2, 2) == short_type && value && *value >= 1 && *value <= 8;
    return is_good ? static_cast<int>(*value) : as_stored;
  }
  return as_stored;
}

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

int orientation_in_jpeg(std::span<const std::byte> file) {
  constexpr std::uint32_t app1 = 0xe1, start_of_scan = 0xda, end_of_image = 0xd9;
  constexpr std::string_view exif = "Exif\0\0"sv;
  const Bytes bytes{file};
  for (std::uint64_t at = 2; bytes.number(at, 1) == 0xff;) {
    const std::uint32_t marker = bytes.number(at + 1, 1).value_or(end_of_image);
    if (marker == 0xff) {  // filling
      ++at;
      continue;
    }
    if (marker == start_of_scan || marker == end_of_image) break;
    const std::uint32_t length = bytes.number(at + 2, 2).value_or(0);
    if (length < 2) break;
    if (marker == app1 && bytes.has(at + 4, exif))
      return orientation_in_tiff(
          bytes.from(at + 4 + exif.size(), length - std::min<std::uint64_t>(length, 2 + exif.size())));
    at += 2 + length;
  }
  return as_stored;
}

int orientation_in_png(std::span<const std::byte> file) {
  constexpr std::uint64_t signature_bytes = 8, around_chunk = 12;  // length, name, check sum
  const Bytes bytes{file};
  for (std::uint64_t at = signature_bytes; bytes.number(at + 4, 4);) {
    const std::uint64_t length = *bytes.number(at, 4);
    if (bytes.has(at + 4, "eXIf")) return orientation_in_tiff(bytes.from(at + 8, length));
    at += around_chunk + length;
  }
  return as_stored;
}

void turn_upright(Image& image) {
  const int orientation = image.facts.orientation;
  if (orientation == as_stored) return;
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

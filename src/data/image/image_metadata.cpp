#include "data/image/image_metadata.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep::data {
namespace {

using namespace std::string_view_literals;

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

/// Reads the orientation from a TIFF header and its first directory, as EXIF has them. An entry of the directory has a
/// tag, a type, a count and a value.
std::optional<int> orientation_in_tiff(std::span<const std::byte> tiff) {
  constexpr std::uint32_t orientation_tag = 0x0112, short_type = 3;
  constexpr std::uint64_t entry_bytes = 12;
  const Bytes order{tiff};
  const bool is_little_endian = order.has(0, "II*\0"sv);
  if (!is_little_endian && !order.has(0, "MM\0*"sv)) return std::nullopt;
  const Bytes bytes{tiff, is_little_endian};
  const std::uint64_t directory = bytes.number(4, 4).value_or(UINT32_MAX);
  const std::uint64_t n_entries = bytes.number(directory, 2).value_or(0);
  for (std::uint64_t i = 0; i < n_entries; ++i) {
    const std::uint64_t entry = directory + 2 + i * entry_bytes;
    const auto tag = bytes.number(entry, 2);
    if (!tag) return std::nullopt;
    if (*tag != orientation_tag) continue;
    const auto value = bytes.number(entry + 8, 2);
    const bool is_good = bytes.number(entry + 2, 2) == short_type && value && *value >= 1 && *value <= 8;
    return is_good ? std::optional{static_cast<int>(*value)} : std::nullopt;
  }
  return std::nullopt;
}

/// Reads the orientation from an XMP packet: `tiff:Orientation="6"`, or <tiff:Orientation>6<.
std::optional<int> orientation_in_xmp(std::span<const std::byte> packet) {
  constexpr std::string_view name = "tiff:Orientation";
  const std::string_view text{reinterpret_cast<const char*>(packet.data()), packet.size()};
  const std::size_t at = text.find(name);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = text.substr(at + name.size());
  for (const std::string_view before : {"=\""sv, "='"sv, ">"sv})
    if (rest.starts_with(before) && rest.size() > before.size() + 1) {
      const char digit = rest[before.size()], end = rest[before.size() + 1];
      const bool is_good = digit >= '1' && digit <= '8' && (end == '"' || end == '\'' || end == '<');
      return is_good ? std::optional{digit - '0'} : std::nullopt;
    }
  return std::nullopt;
}

/// As Pillow does: XMP only where EXIF has none.
void choose_orientation(std::optional<int> exif, std::optional<int> xmp, ImageFacts& facts) {
  facts.orientation = exif.value_or(xmp.value_or(1));
  facts.has_other_orientation = exif && xmp && *exif != *xmp;
}

constexpr std::uint32_t end_of_image = 0xd9;  ///< a marker of a JPEG, behind 0xff

/// Calls `see(marker, payload)` for the segments of a JPEG before its first scan. Returns the offset of that scan.
template <class See>
std::uint64_t for_segments(std::span<const std::byte> file, See&& see) {
  constexpr std::uint32_t start_of_scan = 0xda;
  const Bytes bytes{file};
  std::uint64_t at = 2;
  while (bytes.number(at, 1) == 0xff) {
    const std::uint32_t marker = bytes.number(at + 1, 1).value_or(end_of_image);
    if (marker == 0xff) {  // filling
      ++at;
      continue;
    }
    if (marker == start_of_scan || marker == end_of_image) break;
    const std::uint32_t length = bytes.number(at + 2, 2).value_or(0);
    if (length < 2) break;
    see(marker, bytes.from(at + 4, length - 2));
    at += 2 + length;
  }
  return at;
}

/// Returns the offset behind the picture of a JPEG whose first scan is at `at`. Markers have a length, except the end,
/// restarts (0xd0 to 0xd7), and 0, which stands for a byte 0xff of a scan.
std::uint64_t end_of_scans(std::span<const std::byte> file, std::uint64_t at) {
  const Bytes bytes{file};
  while (at < file.size()) {
    const auto next = std::find(file.begin() + static_cast<std::ptrdiff_t>(at), file.end(), std::byte{0xff});
    at = static_cast<std::uint64_t>(next - file.begin());
    const std::uint32_t marker = bytes.number(at + 1, 1).value_or(0);
    if (marker == end_of_image) break;
    const bool has_length = marker > 1 && marker != 0xff && (marker < 0xd0 || marker > 0xd7);
    at += marker == 0xff ? 1 : 2 + (has_length ? bytes.number(at + 2, 2).value_or(0) : 0);
  }
  return at + 2;
}

/// Whether there is anything but zeros from `at` on.
bool has_data_from(std::uint64_t at, std::span<const std::byte> file) {
  return std::ranges::any_of(Bytes{file}.from(at, file.size()), [](std::byte b) { return b != std::byte{0}; });
}

/// Calls `see(name, data)` for the chunks of a PNG up to its end. Returns the offset behind them.
template <class See>
std::uint64_t for_chunks(std::span<const std::byte> file, See&& see) {
  constexpr std::uint64_t signature_bytes = 8, around_chunk = 12;  // length, name, check sum
  const Bytes bytes{file};
  for (std::uint64_t at = signature_bytes; bytes.number(at + 4, 4);) {
    const std::uint64_t length = *bytes.number(at, 4);
    const std::span<const std::byte> name = bytes.from(at + 4, 4);
    see(std::string_view{reinterpret_cast<const char*>(name.data()), name.size()}, bytes.from(at + 8, length));
    const bool is_last = bytes.has(at + 4, "IEND");
    at += around_chunk + length;
    if (is_last) return at;
  }
  return file.size();
}

}  // namespace

void look_into_jpeg(std::span<const std::byte> file, ImageFacts& facts) {
  constexpr std::uint32_t app1 = 0xe1, app2 = 0xe2;
  constexpr std::string_view exif = "Exif\0\0"sv, xmp = "http://ns.adobe.com/xap/1.0/\0"sv, icc = "ICC_PROFILE\0"sv,
                             multi_picture = "MPF\0"sv;
  bool has_exif = false;
  std::optional<int> by_exif, by_xmp;
  const auto see = [&](std::uint32_t marker, std::span<const std::byte> payload) {
    const Bytes bytes{payload};
    if (marker == app1 && bytes.has(0, exif)) {
      if (!has_exif) by_exif = orientation_in_tiff(payload.subspan(exif.size()));
      has_exif = true;
    } else if (marker == app1 && bytes.has(0, xmp)) {
      by_xmp = by_xmp ? by_xmp : orientation_in_xmp(payload.subspan(xmp.size()));
    } else if (marker == app2 && bytes.has(0, icc)) {
      facts.has_profile = true;
    } else if (marker == app2 && bytes.has(0, multi_picture)) {
      facts.has_more_pictures = true;
    }
  };
  const std::uint64_t end = end_of_scans(file, for_segments(file, see));
  facts.has_data_behind = !facts.has_more_pictures && has_data_from(end, file);  // MPF has its pictures there
  choose_orientation(by_exif, by_xmp, facts);
}

// XMP that is compressed, which nobody writes, is not looked into.
void look_into_png(std::span<const std::byte> file, ImageFacts& facts) {
  constexpr std::string_view xmp = "XML:com.adobe.xmp\0\0"sv;
  std::optional<int> by_exif, by_xmp;
  const std::uint64_t end = for_chunks(file, [&](std::string_view name, std::span<const std::byte> data) {
    if (name == "eXIf" && !by_exif) by_exif = orientation_in_tiff(data);
    if (name == "iTXt" && Bytes{data}.has(0, xmp))
      by_xmp = by_xmp ? by_xmp : orientation_in_xmp(data.subspan(xmp.size()));
    if (name == "acTL") facts.is_animated = true;
  });
  facts.has_data_behind = has_data_from(end, file);
  choose_orientation(by_exif, by_xmp, facts);
}

}  // namespace lockstep::data

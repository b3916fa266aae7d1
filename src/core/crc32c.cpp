#include "core/crc32c.hpp"

#include "core/crc32c_paths.hpp"

namespace lockstep::core {
namespace {

using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

/// Entry [k][b]: the contribution of byte b to the register when k more bytes follow it.
constexpr Tables make_tables() noexcept {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? crc32c_polynomial : 0);
    tables[0][byte] = crc;
  }
  for (std::size_t k = 1; k < tables.size(); ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t crc = tables[k - 1][byte];
      tables[k][byte] = (crc >> 8) ^ tables[0][crc & 0xff];
    }
  }
  return tables;
}

constexpr Tables tables = make_tables();

/// Loads from any alignment, on machines of any byte order; compilers make this one load.
std::uint64_t load_little_endian(const std::byte* bytes) noexcept {
  std::uint64_t word = 0;
  for (int i = 7; i >= 0; --i) word = (word << 8) | static_cast<std::uint64_t>(bytes[i]);
  return word;
}

Crc32cPath find_path() noexcept {
  for (const Crc32cPath path : {crc32c_by_wide_instructions(), crc32c_by_instructions()})
    if (path != nullptr) return path;
  return &crc32c_by_tables;
}

}  // namespace

std::uint32_t crc32c_by_tables(std::uint32_t crc, std::span<const std::byte> data) noexcept {
  for (; data.size() >= 8; data = data.subspan(8)) {
    const std::uint64_t word = load_little_endian(data.data()) ^ crc;
    crc = 0;
    for (std::size_t i = 0; i < 8; ++i) crc ^= tables[7 - i][(word >> (8 * i)) & 0xff];
  }
  for (const std::byte byte : data) crc = (crc >> 8) ^ tables[0][(crc ^ static_cast<std::uint32_t>(byte)) & 0xff];
  return crc;
}

std::uint32_t crc32c(std::span<const std::byte> data, std::uint32_t before) noexcept {
  static const Crc32cPath path = find_path();
  return ~path(~before, data);
}

}  // namespace lockstep::core

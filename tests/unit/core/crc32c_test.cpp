#include "core/crc32c.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "core/crc32c_paths.hpp"
#include "core/rng.hpp"

namespace lockstep::core {
namespace {

std::vector<std::byte> random_bytes(std::size_t n) {
  Random random{7};
  std::vector<std::byte> bytes(n);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.below(256));
  return bytes;
}

/// Computed bit by bit, as in the definition.
std::uint32_t reference(std::span<const std::byte> data) {
  std::uint32_t crc = ~0u;
  for (const std::byte byte : data) {
    crc ^= static_cast<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? (crc >> 1) ^ 0x82f63b78 : crc >> 1;
  }
  return ~crc;
}

/// RFC 3720, B.4.
struct Vector {
  std::vector<std::byte> data;
  std::uint32_t crc;
};

std::vector<Vector> rfc_vectors() {
  std::vector<std::byte> up(32);
  for (std::size_t i = 0; i < up.size(); ++i) up[i] = static_cast<std::byte>(i);
  std::vector<std::byte> down{up.rbegin(), up.rend()};
  std::vector<std::byte> read_command(48);
  constexpr std::pair<std::size_t, int> filled[] = {{0, 0x01},  {1, 0xc0},  {16, 0x14}, {22, 0x04},
                                                    {27, 0x14}, {31, 0x18}, {32, 0x28}, {40, 0x02}};
  for (const auto& [at, value] : filled) read_command[at] = static_cast<std::byte>(value);
  return {{std::vector<std::byte>(32, std::byte{0}), 0x8a9136aa},
          {std::vector<std::byte>(32, std::byte{0xff}), 0x62a8ab43},
          {up, 0x46dd794e},
          {down, 0x113fdb5c},
          {read_command, 0xd9963a56}};
}

/// The paths that this machine supports.
std::vector<Crc32cPath> paths() {
  std::vector<Crc32cPath> paths{&crc32c_by_tables};
  for (const Crc32cPath path : {crc32c_by_instructions(), crc32c_by_wide_instructions()})
    if (path != nullptr) paths.push_back(path);
  return paths;
}

TEST(Crc32c, GivesTheCheckSumsOfTheStandard) {
  EXPECT_EQ(crc32c(std::as_bytes(std::span{std::string_view{"123456789"}})), 0xe3069283);
  EXPECT_EQ(crc32c({}), 0u);
  for (const auto& [data, crc] : rfc_vectors()) {
    EXPECT_EQ(crc32c(data), crc);
    for (const Crc32cPath path : paths()) EXPECT_EQ(~path(~0u, data), crc);
  }
}

TEST(Crc32c, EachPathIsRightForEachLengthAndAlignment) {
  const auto bytes = random_bytes(1200);
  for (std::size_t alignment = 0; alignment < 9; ++alignment) {
    for (std::size_t n = 0; n + alignment <= bytes.size(); n += n < 40 ? 1 : 7) {
      const auto data = std::span{bytes}.subspan(alignment, n);
      const std::uint32_t expected = reference(data);
      for (const Crc32cPath path : paths()) ASSERT_EQ(~path(~0u, data), expected) << n << " bytes from " << alignment;
    }
  }
}

TEST(Crc32c, EachPathIsRightForLongData) {
  const auto bytes = random_bytes(3 * 65536 + 5);
  for (const std::size_t n : {3071u, 3072u, 3073u, 6144u, 9600u, 65535u, 65536u, 196613u}) {
    const auto data = std::span{bytes}.first(n);
    const std::uint32_t expected = reference(data);
    for (const Crc32cPath path : paths()) EXPECT_EQ(~path(~0u, data), expected) << n << " bytes";
  }
}

TEST(Crc32c, OfPartsIsThatOfTheWhole) {
  const auto bytes = random_bytes(10000);
  const std::uint32_t whole = crc32c(bytes);
  for (std::size_t cut = 0; cut <= bytes.size(); cut += 97) {
    const std::uint32_t front = crc32c(std::span{bytes}.first(cut));
    ASSERT_EQ(crc32c(std::span{bytes}.subspan(cut), front), whole) << cut;
  }
}

TEST(Crc32c, NoticesEachFlippedBit) {
  auto bytes = random_bytes(4000);
  const std::uint32_t whole = crc32c(bytes);
  for (std::size_t i = 0; i < bytes.size(); i += 13) {
    bytes[i] ^= std::byte{0x10};
    ASSERT_NE(crc32c(bytes), whole) << i;
    bytes[i] ^= std::byte{0x10};
  }
}

}  // namespace
}  // namespace lockstep::core

#include "data/format/shard_index.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "core/crc32c.hpp"
#include "unit/io/temporary_folder.hpp"

namespace lockstep::data {
namespace {

using io::expect_error;

constexpr std::uint64_t file_bytes = 1 << 20;

ArrayIndex array(std::string_view name, std::uint64_t n_rows, std::uint64_t row_bytes, std::uint64_t chunk_rows,
                 io::Filter filter) {
  ArrayIndex a{
      .name = std::string{name}, .n_rows = n_rows, .row_bytes = row_bytes, .chunk_rows = chunk_rows, .filter = filter};
  for (std::uint64_t chunk = 0; chunk * chunk_rows < n_rows; ++chunk) {
    a.chunks.push_back({4096 * (chunk + 1), filter == io::Filter::none ? a.chunk_bytes() : 77});
    a.crcs.emplace_back(a.crcs_per_chunk(), static_cast<std::uint32_t>(1000 * row_bytes + chunk));
  }
  return a;
}

ShardIndex raw_index() {
  return {.n_samples = 11,
          .first_id = 300,
          .arrays = {array("x", 11, 30'000, 4, io::Filter::none), array("y", 11, 1, 4, io::Filter::zstd),
                     array("id", 11, 8, 4, io::Filter::lz4)}};
}

ShardIndex encoded_index() {
  return {.n_samples = 3,
          .first_id = 0,
          .arrays = {array("x", 700, 1, 512, io::Filter::none), array("y", 3, 1, 3, io::Filter::none),
                     array("id", 3, 8, 3, io::Filter::none), array("x_offset", 4, 8, 4, io::Filter::none)}};
}

void expect_equal(const ShardIndex& a, const ShardIndex& b) {
  EXPECT_EQ(a.n_samples, b.n_samples);
  EXPECT_EQ(a.first_id, b.first_id);
  ASSERT_EQ(a.arrays.size(), b.arrays.size());
  for (std::size_t i = 0; i < a.arrays.size(); ++i) {
    const ArrayIndex &p = a.arrays[i], &q = b.arrays[i];
    EXPECT_EQ(p.name, q.name);
    EXPECT_EQ(p.n_rows, q.n_rows);
    EXPECT_EQ(p.row_bytes, q.row_bytes);
    EXPECT_EQ(p.chunk_rows, q.chunk_rows);
    EXPECT_EQ(p.element_bytes, q.element_bytes);
    EXPECT_EQ(p.filter, q.filter);
    EXPECT_EQ(p.chunks, q.chunks);
    EXPECT_EQ(p.crcs, q.crcs);
  }
}

TEST(ShardIndex, RoundTrips) {
  for (const ShardIndex& index : {raw_index(), encoded_index()})
    expect_equal(parse_shard_index(serialize(index), file_bytes, "f"), index);
}

TEST(ShardIndex, IsLaidOutAsDocumented) {
  const std::vector<std::byte> bytes = serialize(raw_index());
  const std::string head{reinterpret_cast<const char*>(bytes.data()), 8};
  EXPECT_EQ(head, "LOCKSHRD");
  EXPECT_EQ(bytes[8], std::byte{1});    // version
  EXPECT_EQ(bytes[12], std::byte{3});   // arrays
  EXPECT_EQ(bytes[16], std::byte{11});  // samples
  EXPECT_EQ(bytes[24], std::byte{44});  // 300 = 256 + 44
  EXPECT_EQ(bytes[25], std::byte{1});
  EXPECT_EQ(bytes[32], std::byte{'x'});
  EXPECT_EQ(bytes[48], std::byte{11});      // rows of x
  EXPECT_EQ(bytes[32 + 56], std::byte{6});  // sums of x: 3 chunks of 120 000 bytes
  const std::size_t x_bytes = 64 + 3 * 16 + 6 * 4, other_bytes = 64 + 3 * 16 + 3 * 4;
  EXPECT_EQ(bytes.size(), 32 + x_bytes + 2 * other_bytes + 4);
}

TEST(ShardIndex, RefusesEveryChangedByte) {
  const std::vector<std::byte> bytes = serialize(raw_index());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    auto changed = bytes;
    changed[i] ^= std::byte{0x10};
    expect_error([&] { (void)parse_shard_index(changed, file_bytes, "f"); }, core::ExitCode::failed, {"index", "(f)"});
  }
}

TEST(ShardIndex, RefusesEveryOtherLength) {
  auto bytes = serialize(encoded_index());
  for (std::size_t n = 0; n < bytes.size(); ++n)
    EXPECT_THROW((void)parse_shard_index(std::span{bytes}.first(n), file_bytes, "f"), core::Error) << n;
  bytes.push_back(std::byte{0});
  EXPECT_THROW((void)parse_shard_index(bytes, file_bytes, "f"), core::Error);
}

struct Contradiction {
  const char* words;
  std::function<void(ShardIndex&)> make;
};

// Wrong numbers under a right check sum.
class Contradictions : public testing::TestWithParam<Contradiction> {};

TEST_P(Contradictions, AreRefused) {
  ShardIndex index = raw_index();
  GetParam().make(index);
  expect_error([&] { (void)parse_shard_index(serialize(index), file_bytes, "f"); }, core::ExitCode::failed,
               {GetParam().words});
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, Contradictions,
    testing::Values(
        Contradiction{"rows of y", [](ShardIndex& i) { i.n_samples = 12; }},
        Contradiction{"impossible number", [](ShardIndex& i) { i.first_id = UINT64_MAX - 3; }},
        Contradiction{"impossible number", [](ShardIndex& i) { i.n_samples = 0; }},
        Contradiction{"outside the file", [](ShardIndex& i) { i.arrays[0].chunks[1].address = file_bytes - 3; }},
        Contradiction{"outside the file", [](ShardIndex& i) { i.arrays[0].chunks[1].address = UINT64_MAX - 100; }},
        Contradiction{"wrong size", [](ShardIndex& i) { --i.arrays[0].chunks[1].bytes; }},
        Contradiction{"wrong size", [](ShardIndex& i) { i.arrays[1].chunks[0].bytes = 0; }},
        Contradiction{"different number of rows",
                      [](ShardIndex& i) {
                        i.arrays[1].chunk_rows = 5;
                        ++i.arrays[1].n_rows;
                        i.arrays[1].n_rows = 16;
                      }},
        Contradiction{"impossible size", [](ShardIndex& i) { i.arrays[1].row_bytes = 0; }},
        Contradiction{"impossible size", [](ShardIndex& i) { i.arrays[1].row_bytes = std::uint64_t{1} << 40; }},
        Contradiction{"end within an element", [](ShardIndex& i) { i.arrays[1].element_bytes = 3; }},
        Contradiction{"not uint64", [](ShardIndex& i) { i.arrays[2].row_bytes = 4; }},
        Contradiction{"has no x", [](ShardIndex& i) { i.arrays[0].name = "z"; }},
        Contradiction{"lacks an array", [](ShardIndex& i) { i.arrays.pop_back(); }},
        Contradiction{"lacks an array", [](ShardIndex& i) { i.arrays.push_back(i.arrays[1]); }}));

TEST(ShardIndex, NamesTheVersionItReads) {
  auto bytes = serialize(raw_index());
  bytes[8] = std::byte{2};
  const std::uint32_t crc = core::crc32c(std::span{bytes}.first(bytes.size() - 4));
  for (std::size_t i = 0; i < 4; ++i) bytes[bytes.size() - 4 + i] = static_cast<std::byte>(crc >> (8 * i));
  expect_error([&] { (void)parse_shard_index(bytes, file_bytes, "f"); }, core::ExitCode::failed,
               {"version 2", "reads version 1"});
}

}  // namespace
}  // namespace lockstep::data

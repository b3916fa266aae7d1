#include "io/codec.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "core/rng.hpp"
#include "temporary_folder.hpp"

namespace lockstep::io {
namespace {

constexpr std::size_t element_sizes[] = {1, 2, 3, 4, 8, 12};

bool decodes_to(Filter filter, std::size_t element_size, std::span<const std::byte> stored,
                const std::vector<std::byte>& expected) {
  std::vector<std::byte> chunk(expected.size());
  return decode(filter, element_size, stored, chunk) && chunk == expected;
}

TEST(Codec, NamesAreTheWordsOfTheCommandLine) {
  for (const Filter filter : all_filters) EXPECT_EQ(find_filter(name(filter)), filter);
  EXPECT_EQ(name(Filter::zstd), "zstd");
  EXPECT_FALSE(find_filter("gzip"));
}

TEST(Codec, DecodesWhatItEncodes) {
  for (const std::size_t n : {0u, 1u, 7u, 48u, 1000u, 65536u}) {
    for (const std::uint64_t n_values : {1u, 5u, 256u}) {
      const auto bytes = random_bytes(n, n_values);
      for (const Filter filter : all_filters)
        for (const std::size_t element_size : element_sizes)
          ASSERT_TRUE(decodes_to(filter, element_size, encode(filter, 0, element_size, bytes), bytes))
              << name(filter) << ", " << n << " bytes of elements of " << element_size;
    }
  }
}

TEST(Codec, ShrinksWhatRepeatsAndHardlyGrowsWhatDoesNot) {
  const auto plain = random_bytes(100000, 2);
  const auto noise = random_bytes(100000, 256);
  for (const Filter filter : {Filter::deflate, Filter::zstd, Filter::lz4}) {
    EXPECT_LT(encode(filter, 0, 1, plain).size(), plain.size() * 3 / 4);
    EXPECT_LT(encode(filter, 0, 1, noise).size(), noise.size() + 200);
  }
}

TEST(Codec, ShufflesBeforeZstdAndLz4) {
  std::vector<std::byte> counters;
  for (std::uint32_t i = 0; i < 20000; ++i)
    for (unsigned shift = 0; shift < 32; shift += 8) counters.push_back(static_cast<std::byte>(i * 40503 >> shift));
  for (const Filter filter : {Filter::zstd, Filter::lz4}) {
    const auto stored = encode(filter, 0, 4, counters);
    EXPECT_FALSE(decodes_to(filter, 1, stored, counters));
    EXPECT_TRUE(decodes_to(filter, 4, stored, counters));
  }
  EXPECT_EQ(encode(Filter::deflate, 0, 4, counters), encode(Filter::deflate, 0, 1, counters));
}

TEST(Codec, TakesLevels) {
  const auto bytes = random_bytes(50000, 5);
  for (const Filter filter : {Filter::deflate, Filter::zstd, Filter::lz4}) {
    const auto fast = encode(filter, 1, 1, bytes);
    const auto small = encode(filter, 9, 1, bytes);
    EXPECT_NE(small, fast) << name(filter);
    EXPECT_TRUE(decodes_to(filter, 1, small, bytes));
    expect_error([&] { static_cast<void>(encode(filter, 99, 1, bytes)); }, core::ExitCode::usage,
                 {std::string{name(filter)}, "99", "0 to"});
    expect_error([&] { static_cast<void>(encode(filter, -1, 1, bytes)); }, core::ExitCode::usage, {"-1"});
  }
}

// Damage may go unnoticed here (check sums detect it), but must never write beyond the chunk.
TEST(Codec, SurvivesDamage) {
  const auto bytes = random_bytes(3000, 6);
  core::Random random{3};
  for (const Filter filter : all_filters) {
    const auto stored = encode(filter, 0, 4, bytes);
    for (std::size_t i = 0; i < stored.size(); ++i) {
      auto damaged = stored;
      damaged[i] ^= static_cast<std::byte>(1 + random.below(255));
      std::vector<std::byte> chunk(bytes.size());
      static_cast<void>(decode(filter, 4, damaged, chunk));
    }
    for (int i = 0; i < 2000; ++i) {
      const auto noise = random_bytes(1 + random.below(400), 256);
      std::vector<std::byte> chunk(random.below(500));
      EXPECT_EQ(decode(filter, 4, noise, chunk), filter == Filter::none && noise.size() == chunk.size());
    }
  }
}

TEST(Codec, RefusesAnyOtherLength) {
  const auto bytes = random_bytes(3000, 6);
  for (const Filter filter : all_filters) {
    const auto stored = encode(filter, 0, 4, bytes);
    for (const std::size_t n : {0u, 1u, 2999u, 3001u, 100000u}) {
      std::vector<std::byte> chunk(n);
      EXPECT_FALSE(decode(filter, 4, stored, chunk)) << name(filter) << " " << n;
    }
    std::vector<std::byte> chunk(bytes.size());
    for (std::size_t n = 0; n < stored.size(); ++n)
      ASSERT_FALSE(decode(filter, 4, std::span{stored}.first(n), chunk)) << name(filter) << " cut to " << n;
    auto longer = stored;
    longer.push_back(std::byte{0});
    EXPECT_FALSE(decode(filter, 4, longer, chunk)) << name(filter);
  }
}

TEST(Codec, Lz4HasTheHeaderOfTheRegisteredFilter) {
  const std::vector<std::byte> zeros(70000, std::byte{0});
  const auto stored = encode(Filter::lz4, 0, 1, zeros);
  const std::vector<std::byte> header(stored.begin(), stored.begin() + 16);
  const auto n_block = static_cast<std::uint8_t>(stored.size() - 16);
  EXPECT_EQ(stored[15], static_cast<std::byte>(n_block));
  std::vector<std::byte> expected(16);
  expected[5] = expected[9] = std::byte{1};  // 70000 = 0x11170, big-endian in 8 and in 4 bytes
  expected[6] = expected[10] = std::byte{0x11};
  expected[7] = expected[11] = std::byte{0x70};
  expected[14] = static_cast<std::byte>((stored.size() - 16) >> 8);
  expected[15] = stored[15];
  EXPECT_EQ(header, expected);
}

TEST(Codec, Lz4ReadsSeveralBlocks) {
  // 5 bytes in blocks of 2, all stored as they are; a last block may be shorter.
  const std::vector<int> values{0, 0,   0,   0, 0, 0, 0, 5,   0,   0, 0, 2, 0, 0,  0,
                                2, 'a', 'b', 0, 0, 0, 2, 'c', 'd', 0, 0, 0, 1, 'e'};
  std::vector<std::byte> stored;
  for (const int value : values) stored.push_back(static_cast<std::byte>(value));
  std::vector<std::byte> chunk(5);
  ASSERT_TRUE(decode(Filter::lz4, 1, stored, chunk));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(chunk.data()), 5), "abcde");
}

TEST(Codec, WorksInThreads) {
  const auto bytes = random_bytes(200000, 9);
  std::vector<std::jthread> threads;
  std::atomic<int> n_wrong{0};
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (const Filter filter : all_filters)
        for (const std::size_t element_size : element_sizes)
          if (!decodes_to(filter, element_size, encode(filter, 0, element_size, bytes), bytes)) ++n_wrong;
    });
  }
  threads.clear();
  EXPECT_EQ(n_wrong, 0);
}

}  // namespace
}  // namespace lockstep::io

#include "data/read/shard_set.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "unit/data/tiny_source.hpp"
#include "unit/io/temporary_folder.hpp"

namespace lockstep::data {
namespace {

using io::expect_error;
using io::TemporaryFolder;

void expect_samples(const ShardSet& set, TinySource& source, std::uint64_t first, std::uint64_t n) {
  std::vector<std::byte> x(n * set.spec().x.bytes()), y(n * set.spec().y.bytes());
  std::vector<std::byte> expected_x(x.size()), expected_y(y.size());
  set.read(first, n, x, y);
  source.read(0, first, n, expected_x, expected_y);
  EXPECT_EQ(x, expected_x) << n << " samples from " << first;
  EXPECT_EQ(y, expected_y) << n << " samples from " << first;
}

class Filters : public testing::TestWithParam<io::Filter> {};

TEST_P(Filters, AnySamplesAreReadAcrossShards) {
  const TemporaryFolder folder;
  TinySource source{{{"train", 43}}};
  write_set(folder.path(), source, {.shard_samples = 16, .chunk_samples = 4, .filter = GetParam()});
  for (const std::size_t max_open : {0, 1, 64}) {
    const ShardSet set{folder.path(), "train", max_open};
    EXPECT_EQ(set.n_samples(), 43);
    EXPECT_EQ(set.n_shards(), 3);
    EXPECT_EQ(set.first_of(2), 32);
    EXPECT_EQ(set.shard_of(31), 1);
    EXPECT_EQ(set.shard_of(32), 2);
    for (std::uint64_t first = 0; first < 43; ++first)
      for (std::uint64_t n : {0, 1, 3, 20, 43}) expect_samples(set, source, first, std::min(n, 43 - first));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Filters, testing::ValuesIn(io::all_filters));

TEST(ShardSet, ReadsEncodedSamples) {
  const TemporaryFolder folder;
  TinySource source{{{"train", 43}}};
  source.make_encoded();
  write_set(folder.path(), source, {.shard_samples = 16, .encoded_chunk_bytes = 100});
  const ShardSet set{folder.path(), "train"};
  for (std::uint64_t i = 0; i < 43; ++i) {
    std::vector<std::byte> y(1), expected_y(1);
    EXPECT_EQ(set.read_encoded(i, y), source.read_encoded(0, i, expected_y));
    EXPECT_EQ(y, expected_y);
  }
}

TEST(ShardSet, MayBeEmpty) {
  const TemporaryFolder folder;
  TinySource source{{{"train", 0}, {"val", 1}}};
  write_set(folder.path(), source, {.shard_samples = 16, .chunk_samples = 4});
  const ShardSet set{folder.path(), "train"};
  EXPECT_EQ(set.n_samples(), 0);
  EXPECT_EQ(set.n_shards(), 0);
  set.read(0, 0, {}, {});
  EXPECT_EQ(ShardSet(folder.path(), "val").n_samples(), 1);
  expect_error([&] { ShardSet(folder.path(), "test"); }, core::ExitCode::usage, {"train, val"});
}

TEST(ShardSet, KeepsAReaderThatIsInUse) {
  const TemporaryFolder folder;
  TinySource source{{{"train", 40}}};
  write_set(folder.path(), source, {.shard_samples = 10, .chunk_samples = 5});
  const ShardSet set{folder.path(), "train", 1};
  const auto reader = set.open(0);
  (void)set.open(1);
  EXPECT_NE(set.open(0), reader) << "only one shard may stay open";
  std::vector<std::byte> y(10);
  reader->read_rows(*reader->index().find("y"), 0, 10, y);
}

TEST(ShardSet, IsReadByManyThreads) {
  const TemporaryFolder folder;
  TinySource source{{{"train", 200}}};
  write_set(folder.path(), source, {.shard_samples = 10, .chunk_samples = 5, .filter = io::Filter::lz4});
  const ShardSet set{folder.path(), "train", 2};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < 200; ++i) expect_samples(set, source, (i * 37 + t) % 200, 1);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(set.counters().n_crc_failures, 0);
}

// All of the set, or an empty one if it is refused.
std::vector<std::byte> read_all(const std::string& folder, bool is_encoded) {
  try {
    const ShardSet set{folder, "train"};
    std::vector<std::byte> all;
    if (!is_encoded) {
      std::vector<std::byte> x(set.n_samples() * set.spec().x.bytes()), y(set.n_samples());
      set.read(0, set.n_samples(), x, y);
      all = x;
      all.insert(all.end(), y.begin(), y.end());
    }
    for (std::uint64_t i = 0; is_encoded && i < set.n_samples(); ++i) {
      std::vector<std::byte> y(1);
      const auto image = set.read_encoded(i, y);
      all.insert(all.end(), image.begin(), image.end());
      all.push_back(y[0]);
    }
    return all;
  } catch (const core::Error&) {
    return {};
  }
}

void expect_no_silent_change(const std::string& folder, bool is_encoded) {
  const std::vector<std::byte> right = read_all(folder, is_encoded);
  ASSERT_FALSE(right.empty());
  std::size_t n_refused = 0;
  for (const auto& entry : std::filesystem::directory_iterator{folder}) {
    const std::string content = io::get(entry.path());
    std::fstream file{entry.path(), std::ios::in | std::ios::out |
                                        std::ios::binary};  // in place: a file cut and written again waits for the disk
    const auto put = [&](std::size_t at, char byte) {
      file.seekp(static_cast<std::streamoff>(at));
      file.put(byte).flush();
    };
    for (std::size_t i = 0; i < content.size(); ++i) {
      put(i, static_cast<char>(content[i] ^ 0x55));
      const std::vector<std::byte> found = read_all(folder, is_encoded);
      n_refused += found.empty() ? 1 : 0;
      EXPECT_TRUE(found.empty() || found == right) << entry.path() << ", byte " << i;
      put(i, content[i]);
    }
  }
  EXPECT_GE(n_refused, right.size()) << "changed samples were not refused";
}

TEST(ShardSet, NeverDeliversAChangedByte) {
  for (const io::Filter filter : {io::Filter::none, io::Filter::zstd}) {
    const TemporaryFolder folder;
    TinySource source{{{"train", 3}}};
    write_set(folder.path(), source, {.shard_samples = 3, .chunk_samples = 2, .filter = filter});
    expect_no_silent_change(folder.path(), false);
  }
}

TEST(ShardSet, NeverDeliversAChangedByteOfAnImage) {
  const TemporaryFolder folder;
  TinySource source{{{"train", 5}}};
  source.make_encoded();
  write_set(folder.path(), source, {.shard_samples = 5, .encoded_chunk_bytes = 50});
  expect_no_silent_change(folder.path(), true);
}

}  // namespace
}  // namespace lockstep::data

#include "data/read/verify.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "data/format/little_endian.hpp"
#include "data/format/manifest.hpp"
#include "data/read/shard_reader.hpp"
#include "data/write/pack.hpp"
#include "io/digest.hpp"
#include "shared_folder.hpp"
#include "support/sanitized.hpp"
#include "unit/data/tiny_source.hpp"
#include "unit/io/temporary_folder.hpp"

namespace lockstep::data {
namespace {

using support::content_of;
using support::files_of;
using support::SharedFolder;
using support::world;

// Splits of 20 and 5 samples in shards of 8, chunks of 4, and an extra file.
void make_set(const std::string& folder, const runtime::Communicator& ranks) {
  TinySource source{{{"train", 20}, {"val", 5}}};
  source.extras = {{"ids.h5", {{"users", {7, 8, 9}}}}};
  (void)pack(source, {.out = folder, .shard_bytes = {8 * 44}, .chunk_bytes = {4 * 35}}, ranks, {});
}

// On rank 0; nothing elsewhere.
void expect_damages(const std::string& folder, const std::vector<std::pair<std::string, std::string>>& expected) {
  world().barrier();
  const VerifyResult result = verify(folder, world(), {});
  world().barrier();
  if (world().rank() > 0) {
    EXPECT_TRUE(result.damages.empty());
    return;
  }
  ASSERT_EQ(result.damages.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(result.damages[i].file, expected[i].first);
    EXPECT_NE(result.damages[i].text.find(expected[i].second), std::string::npos) << result.damages[i].text;
  }
}

// Changes the content of a file on rank 0.
template <class Change>
void change_file(const std::string& path, Change change) {
  world().barrier();
  if (world().rank() == 0) {
    std::string content = content_of(path);
    change(content);
    io::put(path, content);
  }
  world().barrier();
}

void flip(const std::string& path, std::uint64_t at) {
  change_file(path, [&](std::string& content) { content.at(at) = static_cast<char>(content[at] ^ 1); });
}

io::Extent chunk_of(const std::string& folder, std::size_t shard, std::string_view array, std::size_t chunk) {
  const Manifest manifest = read_manifest(folder);
  ReadCounters counters;
  const ShardReader reader{folder, manifest.splits[0].shards[shard], manifest.spec, counters};
  return reader.index().find(array)->chunks[chunk];
}

/// Changes the index of a shard of train under right check sums and digests.
template <class Change>
void forge(const std::string& folder, std::size_t shard, Change change) {
  Manifest manifest = read_manifest(folder);
  ShardEntry& entry = manifest.splits[0].shards[shard];
  const std::string path = folder + "/" + entry.file;
  ReadCounters counters;
  ShardIndex index = ShardReader{folder, entry, manifest.spec, counters}.index();
  change(index);
  const std::vector<std::byte> bytes = serialize(index);
  ASSERT_EQ(bytes.size(), entry.index.bytes);
  std::string content = content_of(path);
  std::memcpy(content.data() + entry.index.address, bytes.data(), bytes.size());
  io::put(path, content);
  entry.index_crc = from_little_endian<std::uint32_t>(std::span{bytes}.last(sizeof(std::uint32_t)));
  entry.digest = io::digest_of(std::as_bytes(std::span{content}));
  io::put(folder + "/manifest.json", serialize(manifest));
}

class OfAVerifiedSet {
 public:
  OfAVerifiedSet() { make_set(set, world()); }

  SharedFolder folder{};
  std::string set = folder / "set";
};

RANKS_TEST_F(OfAVerifiedSet, FindsNothingInAWholeSet) {
  std::uint64_t last = 0, all = 0;
  const auto note = [&](std::uint64_t done, std::uint64_t bytes) {
    EXPECT_GE(done, last);
    last = done;
    all = bytes;
    return true;
  };
  const VerifyResult result = verify(set, world(), note);
  EXPECT_TRUE(result.damages.empty());
  EXPECT_FALSE(result.is_stopped);
  if (world().rank() > 0) return;
  EXPECT_EQ(result.n_files, 6);
  EXPECT_EQ(result.n_samples, 25);
  EXPECT_EQ(result.bytes, all);
  EXPECT_EQ(last, all);
}

RANKS_TEST_F(OfAVerifiedSet, NamesArrayChunkAndSamples) {
  flip(set + "/train-00001.h5", chunk_of(set, 1, "x", 1).address + 5);
  flip(set + "/train-00002.h5", chunk_of(set, 2, "y", 0).address);
  expect_damages(set, {{"train-00001.h5", "x, chunk 1 (samples 12 to 15): CRC32C expected 0x"},
                       {"train-00002.h5", "y, chunk 0 (samples 16 to 19): CRC32C expected 0x"}});
}

RANKS_TEST_F(OfAVerifiedSet, NamesEveryDamagedChunk) {
  for (const std::string_view array : {"x", "y", "id"})
    flip(set + "/train-00000.h5", chunk_of(set, 0, array, 1).address);
  expect_damages(set, {{"train-00000.h5", "x, chunk 1 (samples 4 to 7)"},
                       {"train-00000.h5", "y, chunk 1 (samples 4 to 7)"},
                       {"train-00000.h5", "id, chunk 1 (samples 4 to 7)"}});
}

RANKS_TEST_F(OfAVerifiedSet, FindsChangesOutsideTheSamples) {
  flip(set + "/val-00000.h5", 9);
  flip(set + "/ids.h5", 700);
  expect_damages(set, {{"val-00000.h5", "structures of HDF5: digest expected"}, {"ids.h5", "digest expected"}});
}

RANKS_TEST_F(OfAVerifiedSet, FindsMissingTruncatedAndSurplusShards) {
  if (world().rank() == 0) {
    std::filesystem::remove(set + "/train-00000.h5");
    std::filesystem::copy_file(set + "/val-00000.h5", set + "/val-00001.h5");
    io::put(set + "/notes.txt", "mine");
  }
  change_file(set + "/train-00002.h5", [](std::string& content) { content.pop_back(); });
  expect_damages(set, {{"train-00000.h5", "missing"}, {"train-00002.h5", "truncated"}, {"val-00001.h5", "surplus"}});
}

RANKS_TEST_F(OfAVerifiedSet, TellsAShardOfAnotherSet) {
  if (world().rank() == 0) {
    TinySource source{{{"other", 20}, {"train", 20}}};  // other samples under the same name
    const Split split = write_split(folder.path(), source, 1, {.shard_samples = 8, .chunk_samples = 4});
    std::filesystem::copy_file(folder / split.shards[1].file, set + "/train-00001.h5",
                               std::filesystem::copy_options::overwrite_existing);
  }
  expect_damages(set, {{"train-00001.h5", "shard of another set"}});
}

RANKS_TEST_F(OfAVerifiedSet, FindsLabelsWithoutAClass) {
  if (world().rank() == 0) {
    Manifest manifest = read_manifest(set);
    manifest.spec.classes.pop_back();
    io::put(set + "/manifest.json", serialize(manifest));
  }
  world().barrier();
  expect_damages(set, {{"train-00000.h5", "y, chunk 0: sample 2 has label 2, expected 0 to 1"},
                       {"train-00000.h5", "y, chunk 1: sample 5"},
                       {"train-00001.h5", "y, chunk 0: sample 8"},
                       {"train-00001.h5", "y, chunk 1: sample 14"},
                       {"train-00002.h5", "y, chunk 0: sample 17"},
                       {"val-00000.h5", "y, chunk 0: sample 2"}});
}

// All digests are right, but the bytes are not what the index and the manifest say.
RANKS_TEST_F(OfAVerifiedSet, FindsAnIndexThatContradictsItsSet) {
  const auto x_of = [](ShardIndex& index) -> ArrayIndex& {
    return *std::ranges::find(index.arrays, x_name, &ArrayIndex::name);
  };
  if (world().rank() == 0) {
    forge(set, 0, [](ShardIndex& index) { index.first_id = 1; });
    forge(set, 1, [&](ShardIndex& index) { x_of(index).chunks[0] = x_of(index).chunks[1]; });
    forge(set, 2, [&](ShardIndex& index) { x_of(index).filter = io::Filter::deflate; });
  }
  expect_damages(set, {{"train-00000.h5", "begins with id 1, expected 0"},
                       {"train-00001.h5", "x, chunk 0 (samples 8 to 11): CRC32C expected 0x"},
                       {"train-00001.h5", "two chunks of its index overlap"},
                       {"train-00002.h5", "x has the filter deflate, expected none"}});
  if (world().rank() == 0) {
    forge(set, 0, [](ShardIndex& index) { index.first_id = 0; });
    forge(set, 1, [&](ShardIndex& index) { x_of(index).crcs[0] = x_of(index).crcs[1]; });
    forge(set, 2, [&](ShardIndex& index) { x_of(index).filter = io::Filter::none; });
  }
  expect_damages(set, {{"train-00001.h5", "two chunks of its index overlap"}});
  // By another width of elements a compressed chunk would be unshuffled to other values.
  if (world().rank() == 0) forge(set, 2, [&](ShardIndex& index) { x_of(index).element_bytes = 5; });
  expect_damages(set, {{"train-00001.h5", "two chunks of its index overlap"},
                       {"train-00002.h5", "x or y differs in type or shape from the manifest"}});
}

RANKS_TEST_F(OfAVerifiedSet, OfADamagedManifestEndsThere) {
  flip(set + "/manifest.json", 200);
  expect_damages(set, {{"manifest.json", "digest expected"}});
  change_file(set + "/manifest.json", [](std::string& content) { content = "{}"; });
  EXPECT_THROW(verify(set, world(), {}), core::Error);
  EXPECT_THROW(verify(folder / "nothing", world(), {}), core::Error);
}

RANKS_TEST_F(OfAVerifiedSet, StopsWhenAsked) {
  const VerifyResult result = verify(set, world(), [](std::uint64_t, std::uint64_t) { return false; });
  EXPECT_TRUE(result.is_stopped);
}

// Each rank tests its share of the bytes, in a set of its own.
RANKS_TEST(VerifyBytes, EveryChangeOfEveryByteIsFound) {
  const SharedFolder folder;
  const auto own_self = world().split(world().rank(), 0);
  const runtime::Communicator& self = *own_self;
  const std::string set = folder / std::to_string(world().rank());
  TinySource source{{{"train", 3}}};
  source.extras = {{"ids.h5", {{"users", {7}}}}};
  (void)pack(source, {.out = set, .chunk_bytes = {2 * 35}}, self, {});
  std::size_t i = 0;
  for (auto& [name, content] : files_of(set)) {
    for (char& byte : content) {
      if (++i % static_cast<std::size_t>(world().n_ranks() * slow_divisor) != static_cast<std::size_t>(world().rank()))
        continue;
      byte = static_cast<char>(byte ^ 0x55);
      io::put(set + "/" + name, content);
      byte = static_cast<char>(byte ^ 0x55);
      const VerifyResult result = verify(set, self, {});
      ASSERT_FALSE(result.damages.empty()) << name << ", byte " << &byte - content.data();
      EXPECT_EQ(result.damages.front().file, name);
    }
    io::put(set + "/" + name, content);
  }
  EXPECT_GT(i, 5000);
  EXPECT_TRUE(verify(set, self, {}).damages.empty());
}

}  // namespace
}  // namespace lockstep::data

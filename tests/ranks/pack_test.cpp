#include "data/write/pack.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <optional>

#include "data/read/shard_set.hpp"
#include "data/read/verify.hpp"
#include "io/hdf5.hpp"
#include "shared_folder.hpp"
#include "unit/data/tiny_source.hpp"
#include "unit/io/temporary_folder.hpp"

namespace lockstep::data {
namespace {

using support::files_of;
using support::SharedFolder;
using support::world;

// 8 samples a shard, 4 a chunk.
PackOptions small_shards(const std::string& out) {
  return {.out = out, .shard_bytes = {8 * 44}, .chunk_bytes = {4 * 35}};
}

TinySource two_splits() { return TinySource{{{"train", 101}, {"val", 27}, {"test", 0}}}; }

struct Case {
  const char* name;
  std::function<void(TinySource&, PackOptions&)> change;
};

class PackedSet : public testing::TestWithParam<Case> {};

// By all ranks together, and by each rank alone.
RANKS_TEST_P(PackedSet, HasTheSameBytesForAnyNumberOfRanks) {
  const SharedFolder folder;
  const auto make = [&](const std::string& name, const runtime::Communicator& ranks) {
    TinySource source = two_splits();
    PackOptions options = small_shards(folder / name);
    param.change(source, options);
    return pack(source, options, ranks, {});
  };
  const std::string mine = "alone-" + std::to_string(world().rank());
  const PackResult alone = make(mine, *world().split(world().rank(), 0));
  const PackResult together = make("together", world());
  const auto files = files_of(folder / "together");
  EXPECT_GT(files.size(), 3);
  EXPECT_EQ(files, files_of(folder / mine));
  if (world().rank() > 0) return;
  EXPECT_EQ(together.bad, alone.bad);
  EXPECT_EQ(serialize(together.manifest), files.at("manifest.json"));
}

RANKS_TEST_P(PackedSet, IsWhole) {
  const SharedFolder folder;
  TinySource source = two_splits();
  PackOptions options = small_shards(folder / "set");
  param.change(source, options);
  (void)pack(source, options, world(), {});
  const VerifyResult result = verify(folder / "set", world(), {});
  for (const Damage& damage : result.damages) ADD_FAILURE() << damage.file << ": " << damage.text;
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, PackedSet,
    testing::Values(Case{"plain", [](TinySource&, PackOptions&) {}},
                    Case{"zstd", [](TinySource&, PackOptions& o) { o.filter = io::Filter::zstd; }},
                    Case{"shuffled", [](TinySource&, PackOptions& o) { o.shuffle = true; }},
                    Case{"val",
                         [](TinySource& s, PackOptions& o) {
                           s = TinySource{{{"all", 77}}}, o.val = 0.3;
                         }},
                    Case{"encoded", [](TinySource& s, PackOptions&) { s.make_encoded(); }},
                    Case{"extras",
                         [](TinySource& s, PackOptions&) {
                           s.extras = {{"ids.h5", {{"users", {7, 8, 9}}, {"none", {}}}}};
                         }},
                    Case{"bad",
                         [](TinySource& s, PackOptions& o) {
                           s.bad = {{0, 3}, {0, 50}, {0, 51}, {0, 100}, {1, 0}, {1, 26}, {1, 25}, {1, 24}};
                           o.skip_bad = true;
                         }},
                    Case{"bad_shuffled",
                         [](TinySource& s, PackOptions& o) {
                           s.bad = {{1, 3}}, o.skip_bad = o.shuffle = true;
                         }},
                    Case{"bad_encoded",
                         [](TinySource& s, PackOptions& o) {
                           s.make_encoded(), s.bad = {{0, 3}, {0, 99}}, o.skip_bad = true;
                         }}),
    [](const auto& p) { return std::string{p.param.name}; });

// The numbers of the samples in a split, which their first bytes contain.
std::vector<std::uint64_t> samples_in(const std::string& folder, std::string_view split, std::uint64_t n_source) {
  const ShardSet set{folder, split};
  std::vector<std::byte> x(set.n_samples() * 35), y(set.n_samples());
  set.read(0, set.n_samples(), x, y);
  std::vector<std::uint64_t> samples;
  for (std::uint64_t i = 0; i < set.n_samples(); ++i)
    for (std::uint64_t sample = 0; sample < n_source; ++sample) {
      bool is_it = y[i] == static_cast<std::byte>(sample % 3);
      for (std::uint64_t j = 0; j < 35 && is_it; ++j) is_it = x[i * 35 + j] == pattern(0, sample, j);
      if (is_it) samples.push_back(sample);
    }
  EXPECT_EQ(samples.size(), set.n_samples()) << "samples that the source does not have";
  return samples;
}

RANKS_TEST(Pack, KeepsTheSourcesOrder) {
  const SharedFolder folder;
  TinySource source{{{"train", 30}}};
  (void)pack(source, small_shards(folder / "set"), world(), {});
  std::vector<std::uint64_t> expected(30);
  for (std::uint64_t i = 0; i < 30; ++i) expected[i] = i;
  EXPECT_EQ(samples_in(folder / "set", "train", 30), expected);
}

RANKS_TEST(Pack, LeavesOutBadSamplesOnly) {
  const SharedFolder folder;
  TinySource source{{{"train", 33}}};
  source.bad = {{0, 32}, {0, 9}, {0, 10}};
  PackOptions options = small_shards(folder / "set");
  options.skip_bad = true;
  const PackResult result = pack(source, options, world(), {});
  std::vector<std::uint64_t> expected;
  for (std::uint64_t i = 0; i < 32; ++i)
    if (i != 9 && i != 10) expected.push_back(i);
  EXPECT_EQ(samples_in(folder / "set", "train", 33), expected);
  EXPECT_FALSE(std::filesystem::exists(folder / "set/train-00004.h5")) << "33 samples took 5 shards, 30 take 4";
  if (world().rank() == 0) {
    EXPECT_EQ(result.bad, (std::vector<std::string>{"train/9.jpg: truncated", "train/10.jpg: truncated",
                                                    "train/32.jpg: truncated"}));
  }
}

RANKS_TEST(Pack, DividesWithoutRest) {
  const SharedFolder folder;
  TinySource source{{{"all", 60}}};
  PackOptions options = small_shards(folder / "set");
  options.val = 0.25;
  options.shuffle = true;
  (void)pack(source, options, world(), {});
  auto train = samples_in(folder / "set", "train", 60);
  const auto val = samples_in(folder / "set", "val", 60);
  EXPECT_EQ(val.size(), 15);
  EXPECT_FALSE(std::is_sorted(train.begin(), train.end()));
  train.insert(train.end(), val.begin(), val.end());
  std::sort(train.begin(), train.end());
  for (std::uint64_t i = 0; i < 60; ++i) EXPECT_EQ(train.at(i), i);
}

RANKS_TEST(Pack, KeepsExtraFiles) {
  const SharedFolder folder;
  TinySource source = two_splits();
  source.extras = {{"ids.h5", {{"users", {7, -8, 9}}}}};
  (void)pack(source, small_shards(folder / "set"), world(), {});
  std::vector<std::int64_t> users(3);
  io::Hdf5File::open(folder / "set/ids.h5")
      .open_dataset("users")
      .read_rows(0, 3, std::as_writable_bytes(std::span{users}));
  EXPECT_EQ(users, (std::vector<std::int64_t>{7, -8, 9}));
  EXPECT_EQ(read_manifest(folder / "set").extras.at(0).file, "ids.h5");
}

/// Numbers with a few NaN.
class NanSource : public TinySource {
 public:
  NanSource() : TinySource{{{"train", 100}, {"val", 20}}} {
    spec_to_change().x = {core::DType::float32, {2}};
    spec_to_change().classes.clear();
  }
  void read(std::size_t split, std::uint64_t first, std::uint64_t n, std::span<std::byte> x,
            std::span<std::byte>) override {
    for (std::uint64_t i = 0; i < n; ++i) {
      const bool is_nan = split == 0 && (first + i) % 30 == 7;
      const std::array<float, 2> values{1.0F, is_nan ? std::nanf("") : 2.0F};
      std::memcpy(x.data() + i * sizeof(values), values.data(), sizeof(values));
    }
  }
};

RANKS_TEST(Pack, CountsNaN) {
  const SharedFolder folder;
  NanSource source;
  const PackResult result = pack(source, small_shards(folder / "set"), world(), {});
  if (world().rank() == 0) {
    EXPECT_EQ(result.remarks, std::vector{warning("train: 4 of 200 values of x are NaN or infinite")});
  }
}

// Expects the same error on every rank, and no leftovers.
void expect_failure(TinySource& source, const PackOptions& options, core::ExitCode code,
                    const std::vector<std::string>& words) {
  std::string message;
  try {
    (void)pack(source, options, world(), {});
    ADD_FAILURE() << "no error";
  } catch (const core::Error& error) {
    EXPECT_EQ(error.code(), code);
    message = error.what();
  }
  for (const std::string& word : words) EXPECT_NE(message.find(word), std::string::npos) << message;
  EXPECT_EQ(world().broadcast(message), message);
}

RANKS_TEST(Pack, RefusesTwoClassesOfOneName) {
  const SharedFolder folder;
  TinySource source = two_splits();
  source.spec_to_change().classes = {"zero", "one", "zero"};
  expect_failure(source, small_shards(folder / "set"), core::ExitCode::usage, {"two classes are called 'zero'"});
}

RANKS_TEST(Pack, FailsOnAllRanksForOneBadSample) {
  const SharedFolder folder;
  for (const std::uint64_t index : {0, 57, 100}) {
    TinySource source = two_splits();
    source.bad = {{0, index}};
    expect_failure(source, small_shards(folder / "set"), core::ExitCode::usage,
                   {"train/" + std::to_string(index) + ".jpg: truncated", "--skip-bad"});
    EXPECT_TRUE(files_of(folder.path()).empty());
  }
}

RANKS_TEST(Pack, RefusesLabelsWithoutAClass) {
  const SharedFolder folder;
  TinySource source = two_splits();
  source.wrong_label_at = 70;
  expect_failure(source, small_shards(folder / "set"), core::ExitCode::usage,
                 {"sample 70 of 'train' has label 77", "0 to 2, as there are 3 classes"});
  EXPECT_TRUE(files_of(folder.path()).empty());
}

RANKS_TEST(Pack, LeavesNothingOnAFullDisk) {
  const SharedFolder folder;
  std::optional<io::FullDisk> full;
  if (world().rank() == world().n_ranks() - 1) full.emplace(1000);
  TinySource source = two_splits();
  expect_failure(source, small_shards(folder / "set"), core::ExitCode::system, {".h5"});
  full.reset();
  EXPECT_TRUE(files_of(folder.path()).empty());
}

RANKS_TEST(Pack, DoesNotReplaceUnasked) {
  const SharedFolder folder;
  TinySource source = two_splits();
  PackOptions options = small_shards(folder / "set");
  (void)pack(source, options, world(), {});
  const auto before = files_of(folder / "set");
  options.filter = io::Filter::zstd;
  expect_failure(source, options, core::ExitCode::usage, {"--out", "exists"});
  EXPECT_EQ(files_of(folder / "set"), before);
  source.bad = {{0, 99}};
  options.replace = true;
  expect_failure(source, options, core::ExitCode::usage, {"99.jpg"});
  world().barrier();
  EXPECT_EQ(files_of(folder / "set"), before);
  source.bad.clear();
  (void)pack(source, options, world(), {});
  EXPECT_NE(files_of(folder / "set"), before);
}

RANKS_TEST(Pack, ReplacesNothingBecauseAManifestNamesIt) {
  const SharedFolder folder;
  TinySource source = two_splits();
  PackOptions options = small_shards(folder / "set");
  options.replace = true;
  (void)pack(source, options, world(), {});
  if (world().rank() == 0) {
    Manifest manifest = read_manifest(folder / "set");
    manifest.extras.push_back({.file = "thesis.txt", .bytes = 14, .digest = manifest.splits.at(0).shards.at(0).digest});
    std::ofstream{folder / "set/manifest.json"} << serialize(manifest);
    std::ofstream{folder / "set/thesis.txt"} << "years of work\n";
  }
  world().barrier();
  const auto before = files_of(folder / "set");
  expect_failure(source, options, core::ExitCode::usage, {"it contains 'thesis.txt', which belongs to something else"});
  EXPECT_EQ(files_of(folder / "set"), before);
}

RANKS_TEST(Pack, StopsEverywhereWhenAskedOnAnyRank) {
  const SharedFolder folder;
  TinySource source = two_splits();
  const auto stop_on_last_rank = [&](std::uint64_t n_done, std::uint64_t n_samples) {
    EXPECT_LE(n_done, n_samples);
    return world().rank() != world().n_ranks() - 1;
  };
  const PackResult result = pack(source, small_shards(folder / "set"), world(), stop_on_last_rank);
  EXPECT_TRUE(result.is_stopped);
  world().barrier();
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

RANKS_TEST(Pack, TellsItsProgress) {
  const SharedFolder folder;
  TinySource source = two_splits();
  std::uint64_t last = 0;
  const auto note = [&](std::uint64_t n_done, std::uint64_t n_samples) {
    EXPECT_GT(n_done, last);
    EXPECT_EQ(n_samples, 128);
    last = n_done;
    return true;
  };
  (void)pack(source, small_shards(folder / "set"), world(), note);
  EXPECT_EQ(last, 128);
}

}  // namespace
}  // namespace lockstep::data

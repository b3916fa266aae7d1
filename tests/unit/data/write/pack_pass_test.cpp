#include "data/write/pack_pass.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "data/write/stop_flag.hpp"
#include "support/set_clock.hpp"
#include "unit/data/tiny_source.hpp"
#include "unit/io/temporary_folder.hpp"

namespace lockstep::data {
namespace {

using io::expect_error;
using io::TemporaryFolder;

/// Shards of 16 samples, four chunks each, of 43 samples.
class Packed {
 public:
  explicit Packed(std::size_t readers, bool shuffle = false) : options_{.shuffle = shuffle, .skip_bad = true} {
    source.readers = readers;
  }

  PassResult pack() {
    const PackJob job{source, options_, {.shard_samples = 16, .chunk_samples = 4}, folder_.path()};
    const PackPlan plan{source.splits(), options_, 16, {}};
    const PackProgress progress = [this](std::uint64_t n_done, std::uint64_t) {
      n_done_ = n_done;
      return n_done < stop_at;
    };
    return PackPass{job, plan, progress}.run(plan.tasks(), 0, 1);
  }

  /// The digests of the shards.
  std::vector<std::string> digests() {
    std::vector<std::string> digests;
    for (const ShardRecord& shard : pack().shards) digests.emplace_back(shard.digest.begin(), shard.digest.end());
    return digests;
  }

  [[nodiscard]] std::uint64_t n_done() const { return n_done_; }

  TinySource source{{{"train", 43}}};
  std::uint64_t stop_at = UINT64_MAX;

 private:
  TemporaryFolder folder_;
  PackOptions options_;
  std::uint64_t n_done_ = 0;
};

TEST(StopFlag, OfAnotherRankIsLookedForNowAndThen) {
  const TemporaryFolder folder;
  const support::SetClock clock;
  StopFlag mine{folder.path(), clock}, other{folder.path(), clock};
  EXPECT_FALSE(mine.is_raised());
  other.raise();
  EXPECT_TRUE(other.is_raised());
  EXPECT_FALSE(mine.is_raised()) << "it has just looked";
  clock.advance({0.3});
  EXPECT_TRUE(mine.is_raised());
}

class Readers : public testing::TestWithParam<std::size_t> {};

TEST_P(Readers, WriteTheSameShards) {
  for (const bool shuffle : {false, true}) {
    const std::vector<std::string> expected = Packed{1, shuffle}.digests();
    ASSERT_EQ(expected.size(), 3);
    for (int again = 0; again < 5; ++again) EXPECT_EQ(Packed(GetParam(), shuffle).digests(), expected);
  }
}

TEST_P(Readers, FindAllThatIsDamaged) {
  for (const bool shuffle : {false, true}) {
    Packed packed{GetParam(), shuffle};
    packed.source.bad = {{0, 0}, {0, 3}, {0, 4}, {0, 15}, {0, 42}};
    PassResult result = packed.pack();
    std::ranges::sort(result.bad);
    std::vector<std::uint64_t> found;
    for (const BadRecord& bad : result.bad) found.push_back(bad.index);
    EXPECT_EQ(found, (std::vector<std::uint64_t>{0, 3, 4, 15, 42}));
    if (!shuffle) {
      EXPECT_EQ(result.shards.size(), 1);
    }
  }
}

TEST_P(Readers, NameTheFirstWrongLabelOfAChunk) {
  Packed packed{GetParam()};
  packed.source.wrong_label_at = 22;
  expect_error([&] { (void)packed.pack(); }, core::ExitCode::usage, {"sample 22 of 'train' has label 77"});
}

TEST_P(Readers, StopWhenTold) {
  Packed packed{GetParam()};
  packed.stop_at = 20;
  const PassResult result = packed.pack();
  EXPECT_TRUE(result.is_stopped);
  EXPECT_EQ(result.shards.size(), 1);
  EXPECT_EQ(packed.n_done(), 20);
}

INSTANTIATE_TEST_SUITE_P(Numbers, Readers, testing::Values(1, 2, 5));

}  // namespace
}  // namespace lockstep::data

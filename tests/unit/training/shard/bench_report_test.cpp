#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "training/shard/bench.hpp"

namespace lockstep::training::shard {
namespace {

// Seven repeats of 1000 samples that each take `us` microseconds.
StageResult result(Stage stage, double us, double stored, double delivered) {
  const Work work{
      .time_s = us * 1e-3, .n_samples = 1000, .bytes_stored = stored * 1000, .bytes_delivered = delivered * 1000};
  return *summarize(stage, std::vector<Work>(7, work));
}

BenchReport report() {
  return {.stages = {result(Stage::copy, 0.5, 0, 4000), result(Stage::pread, 1, 1000, 0),
                     result(Stage::read, 1.5, 1000, 1000), result(Stage::augment, 2, 0, 4000),
                     result(Stage::loader, 4, 3000, 4000)},
          .n_samples = 1000};
}

TEST(BenchReport, ImageFilesInMemoryAreStillDecoded) {
  BenchReport encoded = report();
  encoded.loader.is_cached = encoded.is_encoded = true;
  const std::vector<Share> shares = encoded.shares();
  ASSERT_EQ(shares.size(), 3u);
  EXPECT_EQ(shares[0].part, "decode");
  EXPECT_DOUBLE_EQ(shares[0].us, 0.5);
}

TEST(BenchReport, RatesComeFromTheMedianOfTimes) {
  std::vector<Work> repeats(7, {.time_s = 1, .n_samples = 1000, .bytes_stored = 2e6, .bytes_delivered = 4e6});
  repeats[0].time_s = 100;  // an outlier
  const auto r = summarize(Stage::read, repeats);
  ASSERT_TRUE(r.has_value());
  EXPECT_EQ(r->n_repeats, 7);
  EXPECT_DOUBLE_EQ(r->samples_per_s(), 1000);
  EXPECT_DOUBLE_EQ(r->stored_GBps(), 2e-3);
  EXPECT_DOUBLE_EQ(r->delivered_GBps(), 4e-3);
  EXPECT_DOUBLE_EQ(r->moved_GBps(), 4e-3);
  ASSERT_TRUE(r->us_per_sample.median_95.has_value());
}

TEST(BenchReport, RepeatsWithoutSamplesSayNothing) {
  EXPECT_FALSE(summarize(Stage::read, {}).has_value());
  EXPECT_FALSE(summarize(Stage::read, {{.time_s = 1}}).has_value());
}

TEST(BenchReport, TheSharesAddUpToTheWholePath) {
  const std::vector<Share> shares = report().shares();
  ASSERT_EQ(shares.size(), 4u);
  EXPECT_DOUBLE_EQ(shares[0].us, 1);
  EXPECT_DOUBLE_EQ(shares[1].us, 0.5);
  EXPECT_DOUBLE_EQ(shares[2].us, 2);
  EXPECT_DOUBLE_EQ(shares[3].us, 0.5);
  EXPECT_EQ(binding(shares).part, "augment");
}

TEST(BenchReport, ACachedSetReadsNothing) {
  BenchReport cached = report();
  cached.loader.is_cached = true;
  ASSERT_EQ(cached.shares().size(), 2u);
  EXPECT_EQ(cached.shares().front().part, "augment");
  EXPECT_NE(describe(cached).find("in memory"), std::string::npos);
}

TEST(BenchReport, AStageThatIsMissingLeavesNoVerdict) {
  BenchReport partial = report();
  partial.stages.pop_back();
  partial.is_complete = false;
  EXPECT_TRUE(partial.shares().empty());
  EXPECT_NE(describe(partial).find("no verdict"), std::string::npos);
  EXPECT_NE(describe(partial).find("Interrupted"), std::string::npos);
  const auto json = nlohmann::json::parse(to_json(partial, {}, {}));
  EXPECT_FALSE(json["complete"].get<bool>());
  EXPECT_TRUE(json["binds"].is_null());
}

TEST(BenchReport, TheTextTellsWhatBinds) {
  const std::string text = describe(report());
  EXPECT_NE(text.find("delivers 250 k samples/s"), std::string::npos);
  EXPECT_NE(text.find("25 % of what pread alone does"), std::string::npos);
  EXPECT_NE(text.find("Bottleneck: augment."), std::string::npos);
  EXPECT_NE(text.find("reads 3.0 bytes for each byte"), std::string::npos);
}

TEST(BenchReport, TheJsonHasEveryStage) {
  const auto json = nlohmann::json::parse(to_json(report(), {}, {}));
  EXPECT_EQ(json["schema"], "lockstep.shard_bench");
  ASSERT_EQ(json["stages"].size(), all_stages.size());
  EXPECT_EQ(json["stages"][4]["stage"], "loader");
  EXPECT_DOUBLE_EQ(json["stages"][4]["samples_per_s_p50"].get<double>(), 250000);
  EXPECT_DOUBLE_EQ(json["stages"][4]["limit_percent"].get<double>(), 12.5);
  EXPECT_DOUBLE_EQ(json["stages"][0]["limit_percent"].get<double>(), 100);
  EXPECT_DOUBLE_EQ(json["loader"]["read_amplification"].get<double>(), 3);
  EXPECT_EQ(json["binds"], "augment");
}

}  // namespace
}  // namespace lockstep::training::shard

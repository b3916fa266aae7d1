#include "runtime/watch/stall.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "support/text.hpp"

namespace lockstep::runtime {
namespace {

using support::has;

const Witness witness{"node7", {10}, Activity::timing, false};

Finding finding(int rank, Condition condition, std::uint64_t position = 5) {
  return {condition, rank, rank, make_process_key(4700 + rank, 1), Activity::timing, position};
}

TEST(SignOfLife, IsTheMoreSeldomTheMoreRanksANodeHas) {
  using std::chrono_literals::operator""ms;
  EXPECT_EQ(sign_of_life_interval(0), 50ms);
  EXPECT_EQ(sign_of_life_interval(15), 50ms);
  EXPECT_EQ(sign_of_life_interval(64), 400ms);
  EXPECT_EQ(sign_of_life_interval(100000), 2000ms);
}

TEST(StallReport, NamesTheStoppedRankAndWhoWaits) {
  EXPECT_EQ(describe_stall({finding(0, Condition::waiting), finding(1, Condition::waiting),
                            finding(2, Condition::stopped), finding(3, Condition::waiting)},
                           witness),
            "error: stalled: no progress for 10 s in phase timing\n"
            "  rank 2 on node7 (pid 4702): stopped by a signal (state T), last seen in phase timing\n"
            "  waiting for it: ranks 0 1 3\n");
}

TEST(StallReport, PrefersEvidenceToInference) {
  const std::string text = describe_stall({finding(0, Condition::waiting, 1), finding(1, Condition::gone, 9)}, witness);
  EXPECT_TRUE(has(text, "rank 1 on node7 (pid 4701): gone")) << text;
  EXPECT_TRUE(has(text, "waiting for it: rank 0\n")) << text;
}

TEST(StallReport, NamesWhoNeverCame) {
  const std::string text = describe_stall({finding(0, Condition::waiting), {Condition::absent, 1}}, witness);
  EXPECT_TRUE(has(text, "local rank 1 on node7: not there")) << text;
}

TEST(StallReport, InfersFromWhoIsFurthestBehind) {
  const std::string text = describe_stall({finding(0, Condition::waiting, 7), finding(1, Condition::waiting, 6),
                                           finding(2, Condition::waiting, 7), finding(3, Condition::left, 1)},
                                          witness);
  EXPECT_TRUE(has(text, "rank 1 on node7 (pid 4701): alive, but furthest behind")) << text;
  EXPECT_TRUE(has(text, "waiting for it: ranks 0 2\n")) << text;
}

TEST(StallReport, BlamesNobodyWithoutReason) {
  const std::vector<Finding> equal{finding(0, Condition::waiting), finding(1, Condition::waiting)};
  EXPECT_TRUE(has(describe_stall(equal, witness), "they wait for one another"));
  Witness on_many_nodes = witness;
  on_many_nodes.has_other_nodes = true;
  EXPECT_TRUE(has(describe_stall(equal, on_many_nodes), "they wait for a rank on another node"));
}

TEST(StallReport, StaysShortForManyRanks) {
  std::vector<Finding> all;
  for (int rank = 0; rank < 100; ++rank) all.push_back(finding(rank, rank < 50 ? Condition::gone : Condition::waiting));
  const std::string text = describe_stall(all, witness);
  EXPECT_TRUE(has(text, "  and 34 more\n")) << text;
  EXPECT_TRUE(has(text, "waiting for them: ranks 50 51")) << text;
  EXPECT_TRUE(has(text, "65 and 34 more\n")) << text;
}

}  // namespace
}  // namespace lockstep::runtime

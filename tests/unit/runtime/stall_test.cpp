#include "runtime/watch/stall.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "runtime/watch/testimony.hpp"
#include "support/text.hpp"
#include "unit/io/temporary_folder.hpp"
#include "unit/runtime/full_output.hpp"

namespace lockstep::runtime {
namespace {

using support::has;

const Witness witness{"node7", {10}, Activity::timing, false};

Finding finding(int rank, Condition condition, std::uint64_t position = 5) {
  return {condition, "node7", rank, rank, make_process_key(4700 + rank, 1), Activity::timing, position};
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
  const std::string text = describe_stall({finding(0, Condition::waiting), {Condition::absent, "node7", 1}}, witness);
  EXPECT_TRUE(has(text, "local rank 1 on node7: not there")) << text;
}

TEST(StallReport, InfersFromWhoIsFurthestBehind) {
  const std::string text = describe_stall({finding(0, Condition::waiting, 7), finding(1, Condition::waiting, 6),
                                           finding(2, Condition::waiting, 7), finding(3, Condition::left, 1)},
                                          witness);
  EXPECT_TRUE(has(text, "rank 1 on node7 (pid 4701): alive, but furthest behind")) << text;
  EXPECT_TRUE(has(text, "waiting for it: ranks 0 2\n")) << text;
}

TEST(StallReport, TellsStepsAndBatchesAndWhatIsWaitedFor) {
  std::vector<Finding> findings{finding(0, Condition::waiting, 7), finding(1, Condition::waiting, 5),
                                finding(2, Condition::waiting, 7)};
  for (Finding& one : findings) one.phase = Activity::training, one.unit = 40;
  for (const std::size_t i : {0u, 2u}) findings[i].wait = Wait::bucket, findings[i].wait_number = 3;
  findings[1].phase = Activity::evaluation;
  findings[1].unit = 12;
  EXPECT_TRUE(has(describe_stall(findings, witness),
                  "  rank 1 on node7 (pid 4701): alive, and waits for nobody, last seen in phase evaluation, batch 12\n"
                  "  waiting for it: ranks 0 2, in phase training, step 40, all-reduce bucket 3\n"));
}

TEST(StallReport, WhoWaitsForNobodyIsToBlameAmongThoseEquallyFar) {
  std::vector<Finding> findings{finding(0, Condition::waiting), finding(1, Condition::waiting)};
  findings[0].wait = Wait::gradients;
  EXPECT_TRUE(has(describe_stall(findings, witness), "rank 1 on node7 (pid 4701): alive, and waits for nobody"));
  findings[1].wait = Wait::agreement;
  EXPECT_TRUE(has(describe_stall(findings, witness), "they wait for one another"));
}

TEST(StallReport, WhoseOutputNobodyReadsIsToBlameThoughAllAreEquallyFar) {
  const std::vector<Finding> findings{finding(0, Condition::unread), finding(1, Condition::waiting)};
  const std::string told =
      "  rank 0 on node7 (pid 4700): alive, but nobody reads its output, last seen in phase timing\n";
  EXPECT_TRUE(has(describe_stall(findings, witness), told + "  waiting for it: rank 1\n"));
}

TEST(StallReport, OutputIsLookedAtOnlyWhereAProcessWaits) {
  const WithFullOutput process;
  const auto find = [&](Condition before) {
    std::vector<Finding> one{finding(0, before)};
    one[0].process = make_process_key(process.pid(), 1);
    find_unread_output(one);
    return one[0].condition;
  };
  EXPECT_EQ(find(Condition::waiting), Condition::unread);
  EXPECT_EQ(find(Condition::stopped), Condition::stopped);
  EXPECT_EQ(find(Condition::moving), Condition::moving);
  process.read_some();
  EXPECT_EQ(find(Condition::waiting), Condition::waiting);
}

TEST(StallReport, BlamesNobodyWithoutReason) {
  const std::vector<Finding> equal{finding(0, Condition::waiting), finding(1, Condition::waiting)};
  EXPECT_TRUE(has(describe_stall(equal, witness), "they wait for one another"));
  Witness on_many_nodes = witness;
  on_many_nodes.has_other_nodes = true;
  EXPECT_TRUE(has(describe_stall(equal, on_many_nodes), "they wait for a rank on another node"));
}

TEST(StallReport, OfSeveralNodesIsByWhoeverIsToBlame) {
  std::vector<Finding> findings{finding(0, Condition::waiting, 7), finding(1, Condition::waiting, 7),
                                finding(2, Condition::waiting, 6)};
  findings[1].host = "node2";
  EXPECT_EQ(find_speaker(findings), "node7");
  findings[1].host = "node7";
  findings[1].slot = findings[2].slot;  // of another node
  findings[2].host = "node9";
  EXPECT_EQ(find_speaker(findings), "node9");
  const std::string text = describe_stall(findings, {"node7", {10}, Activity::timing, true, 3});
  EXPECT_TRUE(has(text, "rank 2 on node9 (pid 4702): alive, but furthest behind")) << text;
  EXPECT_TRUE(has(text, "waiting for it: ranks 0 1\n")) << text;
  findings[2].position = 7;
  EXPECT_EQ(find_speaker(findings), "node7");
  EXPECT_TRUE(has(describe_stall(findings, {"node7", {10}, Activity::timing, true, 3}), "on all 2 nodes, "));
  EXPECT_TRUE(has(describe_stall(findings, {"node7", {10}, Activity::timing, true, 4}),
                  "on 2 nodes, all processes are alive and at the same point: they wait for a rank on another node"));
}

TEST(Testimony, ComesBackAsItWasGiven) {
  const io::TemporaryFolder folder;
  std::vector<Finding> mine{finding(0, Condition::stopped, 7), {Condition::absent, "node7", 1}};
  mine[0].phase = Activity::evaluation, mine[0].unit = 12, mine[0].wait = Wait::bucket, mine[0].wait_number = 3;
  testify(folder.path(), "node7", mine);
  EXPECT_TRUE(hear_others(folder.path(), "node7").empty());
  const std::vector<Finding> heard = hear_others(folder.path(), "node8");
  ASSERT_EQ(heard.size(), 2u);
  EXPECT_EQ(describe_stall(heard, witness), describe_stall(mine, witness));
  EXPECT_EQ(to_text(heard), to_text(mine));
  io::put(folder / "stalled-node9.txt", to_text(mine) + "node9 1 2");
  io::put(folder / "stalled-node5.txt", "");
  EXPECT_EQ(hear_others(folder.path(), "node8").size(), 2u) << "what is no testimony is passed over";
  EXPECT_TRUE(hear_others(folder / "none", "node8").empty());
  const std::string precious = to_text(heard);
  io::put(folder / "precious", precious);
  std::filesystem::create_symlink("precious", folder / "stalled-node4.txt");
  EXPECT_EQ(hear_others(folder.path(), "node8").size(), 2u) << "nor is a link";
  testify(folder.path(), "node4", {});
  EXPECT_EQ(io::get(folder / "precious"), precious);
  EXPECT_FALSE(std::filesystem::is_symlink(folder / "stalled-node4.txt"));
  io::put(folder / "kept", "");
  forget_testimonies(folder.path());
  EXPECT_EQ(folder.n_entries(), 2u);
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

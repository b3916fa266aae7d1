#include "reduce_all/verdict.hpp"

#include <gtest/gtest.h>

namespace lockstep::reduce_all {
namespace {

Row row_of(std::uint64_t bytes, const std::string& algorithm, double time_us) {
  Row row;
  row.bytes = bytes;
  row.dtype = "float32";
  row.op = "sum";
  row.algorithm = algorithm;
  row.time_us_p50 = time_us;
  row.algbw_GBps = static_cast<double>(bytes) / time_us * 1e-3;
  row.limit_GBps = 10;
  row.limit_percent = 100 * row.algbw_GBps / row.limit_GBps;
  return row;
}

std::vector<Row> two_algorithms() {
  return {row_of(8, "mpi", 2),  row_of(8, "shm", 1),          row_of(16, "mpi", 4),
          row_of(16, "shm", 2), row_of(64 << 20, "mpi", 1e4), row_of(64 << 20, "shm", 2e4)};
}

std::string text_of(const std::vector<Row>& rows, const VerdictContext& context) {
  std::string text;
  const auto sentences = verdict(rows, context);
  EXPECT_GE(sentences.size(), 1u);
  EXPECT_LE(sentences.size(), 4u);
  for (const std::string& sentence : sentences) text += sentence + '\n';
  return text;
}

TEST(Verdict, NamesTheWinnerOfEachRangeAndTheGain) {
  const std::string text = text_of(two_algorithms(), {.n_ranks = 2});
  EXPECT_NE(text.find("shm from 8 B to 16 B, mpi at 64 MiB"), std::string::npos) << text;
  EXPECT_NE(text.find("1.6 times as fast"), std::string::npos) << text;  // the cube root of 2 * 2 * 1
  EXPECT_NE(text.find("(8 B) takes 1.00 us"), std::string::npos) << text;
  EXPECT_NE(text.find("At 64 MiB it moves 6.7 GB/s of vector per rank, 67 %"), std::string::npos) << text;
}

TEST(Verdict, SaysWhenChoosingGainsLittle) {
  const std::string text = text_of({row_of(8, "mpi", 1.05), row_of(8, "shm", 1)}, {.n_ranks = 2});
  EXPECT_NE(text.find("less than 10 %"), std::string::npos) << text;
}

TEST(Verdict, TheLibraryIsNotComparedWithItself) {
  const std::string text = text_of({row_of(8, "mpi", 1), row_of(8, "shm", 2)}, {.n_ranks = 2});
  EXPECT_NE(text.find("Fastest here: mpi at 8 B."), std::string::npos) << text;
}

TEST(Verdict, OneAlgorithmIsNoChoice) {
  EXPECT_EQ(text_of({row_of(8, "shm", 1)}, {.n_ranks = 2}).find("Fastest"), std::string::npos);
}

TEST(Verdict, AutoIsNoAlgorithmOfItsOwn) {
  std::vector<Row> rows{row_of(8, "shm", 2), row_of(8, "auto", 1)};
  rows[1].chosen = "shm";
  std::string text = text_of(rows, {.n_ranks = 2});
  EXPECT_EQ(text.find("Fastest"), std::string::npos) << text;
  EXPECT_NE(text.find("(8 B) takes 2.00 us"), std::string::npos) << text;
  rows[0].algorithm = "mpi";
  text = text_of(rows, {.n_ranks = 2});
  EXPECT_NE(text.find("Fastest here: shm at 8 B"), std::string::npos) << text;
}

TEST(Verdict, SmallSizesSayNothingAboutTheLimit) {
  EXPECT_EQ(text_of({row_of(8, "shm", 1)}, {.n_ranks = 2}).find("by copying alone"), std::string::npos);
}

TEST(Verdict, WarningsAndWrongElementsAreNotForgotten) {
  EXPECT_NE(text_of(two_algorithms(), {.n_ranks = 2, .n_warnings = 1}).find("See the warning above"),
            std::string::npos);
  EXPECT_NE(text_of(two_algorithms(), {.n_ranks = 2, .n_warnings = 2}).find("2 warnings"), std::string::npos);
  std::vector<Row> rows = two_algorithms();
  rows[1].wrong = 5;
  const std::string text = text_of(rows, {.n_ranks = 2});
  EXPECT_NE(text.find("5 elements were wrong"), std::string::npos);
  EXPECT_NE(text.find("mpi at 8 B, shm at 16 B"), std::string::npos) << text;
}

TEST(Verdict, SaysWhatTheLargestSizeIsComparedWith) {
  std::vector<Row> rows = two_algorithms();
  EXPECT_NE(text_of(rows, {.n_ranks = 2}).find("67 % of what all ranks reach by copying alone"), std::string::npos);
  for (Row& row : rows) row.limit_by = name(LimitedBy::cores);
  EXPECT_NE(text_of(rows, {.n_ranks = 2}).find("by only reading what other ranks wrote"), std::string::npos);
  for (Row& row : rows) row.limit_by = name(LimitedBy::links);
  EXPECT_NE(text_of(rows, {.n_ranks = 2}).find("by only exchanging over the links between GPUs"), std::string::npos);
}

TEST(Verdict, SaysThatCoresMoved) {
  std::vector<Row> rows = two_algorithms();
  for (Row& row : rows) {
    row.core_round_trip_ns_before = row.core_round_trip_ns_after = row.bytes < 100 ? 110 : 560;
    row.distance_changed = false;
  }
  std::string text = text_of(rows, {.n_ranks = 2});
  EXPECT_NE(text.find("8 B to 16 B at 110 ns, 64 MiB at 560 ns"), std::string::npos) << text;
  rows[0].distance_changed = rows[1].distance_changed = true;
  text = text_of(rows, {.n_ranks = 2});
  EXPECT_NE(text.find("The cores kept moving while 8 B was measured"), std::string::npos) << text;
  EXPECT_NE(text.find("The shortest call (16 B)"), std::string::npos) << text;
  for (Row& row : rows) row.distance_changed = true;
  text = text_of(rows, {.n_ranks = 2});
  EXPECT_TRUE(text.starts_with("The cores kept moving"))
      << "says something of times that are not to be trusted: " << text;
}

TEST(Verdict, SaysThatSizesAreMissing) {
  const std::string text = text_of(two_algorithms(), {.n_ranks = 2, .is_complete = false});
  EXPECT_NE(text.find("The run ended early"), std::string::npos) << text;
}

TEST(Verdict, SaysThatARunCutShortKnowsNothingOfBandwidth) {
  const std::vector<Row> rows{row_of(8, "shm", 1), row_of(1 << 20, "shm", 100)};
  const std::string text = text_of(rows, {.n_ranks = 2, .is_complete = false});
  EXPECT_NE(text.find("The run ended at 1 MiB, so the bandwidth is unknown"), std::string::npos) << text;
  EXPECT_EQ(text_of(rows, {.n_ranks = 2}).find("bandwidth"), std::string::npos);
}

TEST(Verdict, OneRankIsSaidToCommunicateNothing) {
  EXPECT_NE(text_of(two_algorithms(), {.n_ranks = 1}).find("does not communicate"), std::string::npos);
}

TEST(Verdict, OneRankInPlaceIsNoCopy) {
  std::vector<Row> rows = two_algorithms();
  for (Row& row : rows) row.in_place = true;
  const std::string text = text_of(rows, {.n_ranks = 1});
  EXPECT_NE(text.find("empty calls"), std::string::npos) << text;
  EXPECT_EQ(text.find("by copying alone"), std::string::npos) << text;
}

TEST(Verdict, NothingMeasuredIsNothingSaid) {
  EXPECT_NE(text_of({}, {}).find("Nothing was measured"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::reduce_all

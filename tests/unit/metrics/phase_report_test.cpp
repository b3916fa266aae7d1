#include "metrics/phase_report.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace lockstep::metrics {
namespace {

std::vector<runtime::Place> places_on(const std::vector<std::string>& hosts) {
  std::vector<runtime::Place> places;
  for (const std::string& host : hosts)
    places.push_back({.rank = static_cast<int>(places.size()), .host = host, .cpus = {}});
  return places;
}

PhaseTimes times(double forward, double communication) {
  PhaseTimes times;
  times[Phase::forward] = forward;
  times[Phase::communication] = communication;
  return times;
}

TEST(PhaseReport, NamesTheRankAndHostOfTheMost) {
  const std::vector<PhaseTimes> by_rank{times(1, 5), times(4, 2), times(1, 5)};
  const PhaseReport report = report_phases(by_rank, places_on({"a", "b", "c"}));
  ASSERT_EQ(report.rows.size(), all_phases.size());
  const PhaseRow& forward = report.rows[static_cast<std::size_t>(Phase::forward)];
  EXPECT_EQ(forward.phase, Phase::forward);
  EXPECT_EQ(forward.min_s, 1);
  EXPECT_EQ(forward.mean_s, 2);
  EXPECT_EQ(forward.max_s, 4);
  EXPECT_EQ(forward.max_rank, 1);
  EXPECT_EQ(forward.max_host, "b");
  const PhaseRow& communication = report.rows[static_cast<std::size_t>(Phase::communication)];
  EXPECT_EQ(communication.min_s, 2);
  EXPECT_EQ(communication.max_rank, 0) << "the lowest of equals";
  EXPECT_EQ(communication.max_host, "a");
  EXPECT_EQ(report.mean_s(Phase::communication), 4);
  EXPECT_EQ(report.total().value, 6);
}

TEST(PhaseReport, IsEmptyWhereNothingIsKnown) {
  EXPECT_EQ(PhaseReport{}.mean_s(Phase::forward), 0);
  EXPECT_EQ(PhaseReport{}.total().value, 0);
}

TEST(PhaseReport, WantsAPlaceForEachRank) {
  const std::vector<PhaseTimes> by_rank{times(1, 5), times(4, 2)};
  EXPECT_THROW((void)report_phases(by_rank, places_on({"a"})), core::Error);
  EXPECT_THROW((void)report_phases({}, {}), core::Error);
}

}  // namespace
}  // namespace lockstep::metrics

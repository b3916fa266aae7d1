#include <gtest/gtest.h>

#include "metrics/phase_report.hpp"
#include "metrics/step_statistics.hpp"
#include "runtime/session.hpp"
#include "support/mpi_main.hpp"

namespace lockstep::metrics {
namespace {

const runtime::Communicator& world() { return support::session().world(); }

/// A step with `seconds` of forward.
PhaseTimes step(double seconds) {
  PhaseTimes times;
  times[Phase::forward] = seconds;
  return times;
}

TEST(ReducePhases, ReportsAtRankZeroOnly) {
  const runtime::Topology topology = runtime::discover_topology(world());
  const PhaseReport report = reduce_phases(world(), topology, step(1 + world().rank()));
  if (world().rank() > 0) {
    EXPECT_TRUE(report.rows.empty());
    return;
  }
  const PhaseRow& forward = report.rows[static_cast<std::size_t>(Phase::forward)];
  EXPECT_EQ(forward.min_s, 1);
  EXPECT_EQ(forward.max_s, world().n_ranks());
  EXPECT_EQ(forward.mean_s, (1 + world().n_ranks()) / 2.0);
  EXPECT_EQ(forward.max_rank, world().n_ranks() - 1);
  EXPECT_EQ(forward.max_host, runtime::host_name());
}

TEST(StepStatistics, TakesTheSlowestRankOfEachStep) {
  StepStatistics statistics{0};
  const int slow = 2 % world().n_ranks();  // in odd steps; rank 0 in even ones
  for (int i = 0; i < 10; ++i) {
    const bool is_slow = world().rank() == (i % 2 == 0 ? 0 : slow);
    statistics.add(step(is_slow ? 3 : 1), 8);
  }
  const auto summary = statistics.reduce(world());
  EXPECT_EQ(summary.has_value(), world().rank() == 0);
  if (!summary) return;
  EXPECT_EQ(summary->n_steps, 10u);
  EXPECT_EQ(summary->n_samples, 80u);
  EXPECT_EQ(summary->step_s.min, 3) << "every step has a slow rank";
  EXPECT_EQ(summary->step_s.median, 3);
  ASSERT_TRUE(summary->step_s.median_95);
  EXPECT_EQ(summary->time.value, slow == 0 ? 30 : 20) << "of one rank, not of the slowest of each step";
  EXPECT_DOUBLE_EQ(summary->samples_per_s(), 80 / summary->time.value);
}

TEST(StepStatistics, LeavesOutWarmUpEvaluationAndSaving) {
  StepStatistics statistics{2};
  for (const double warmup : {100.0, 50.0}) statistics.add(step(warmup), 8);
  PhaseTimes with_evaluation = step(0.5);
  with_evaluation[Phase::evaluation] = 1000;
  with_evaluation[Phase::save] = 2000;
  statistics.add(with_evaluation, 8);
  statistics.add(step(0.5), 8);
  EXPECT_EQ(statistics.n_steps(), 2u);
  EXPECT_EQ(statistics.phases()[Phase::evaluation], 1000);
  const auto summary = statistics.reduce(world());
  if (!summary) return;
  EXPECT_EQ(summary->step_s.max, 0.5);
  EXPECT_DOUBLE_EQ(summary->samples_per_s(), 16);
}

TEST(StepStatistics, IsNothingWithoutATimedStep) {
  StepStatistics statistics{3};
  statistics.add(step(1), 8);
  EXPECT_FALSE(statistics.reduce(world()));
}

TEST(StepStatistics, ForgetsWhenCleared) {
  StepStatistics interval{1};
  for (const double seconds : {9.0, 9.0, 9.0}) interval.add(step(seconds), 1);
  interval.clear();
  interval.add(step(2), 4);
  const auto summary = interval.reduce(world());
  if (!summary) return;
  EXPECT_EQ(summary->n_steps, 1u) << "and does not warm up again";
  EXPECT_EQ(summary->samples_per_s(), 2);
}

TEST(StepStatistics, RatesCountAllStepsThoughFewAreKept) {
  StepStatistics statistics{0, 16};
  for (int i = 0; i < 1000; ++i) statistics.add(step(0.25), 2);
  const auto summary = statistics.reduce(world());
  if (!summary) return;
  EXPECT_EQ(summary->n_steps, 1000u);
  EXPECT_LE(summary->step_s.n, 16u);
  EXPECT_DOUBLE_EQ(summary->samples_per_s(), 8);
}

}  // namespace
}  // namespace lockstep::metrics

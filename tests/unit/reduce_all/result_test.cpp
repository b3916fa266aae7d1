#include "reduce_all/result.hpp"

#include <gtest/gtest.h>

namespace lockstep::reduce_all {
namespace {

TEST(Result, BusFactorsAreThoseOfNcclTests) {
  EXPECT_DOUBLE_EQ(bus_factor(comm::Collective::all_reduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(bus_factor(comm::Collective::reduce_scatter, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(comm::Collective::all_gather, 4), 0.75);
  for (const comm::Collective collective : comm::all_collectives) EXPECT_DOUBLE_EQ(bus_factor(collective, 1), 1);
}

Measured measured(std::vector<double> seconds) {
  return {.call = {.n_elements = 1000},
          .algorithm = "ring",
          .n_ranks = 4,
          .times = {std::move(seconds), 2},
          .limit = {8, LimitedBy::cores},
          .distance = DistanceSeen{110, 500, true}};
}

TEST(Result, RatesComeFromTheMedian) {
  const Row row = make_row(measured({1e-6, 2e-6, 90e-6}));
  EXPECT_EQ(row.bytes, 4000u);
  EXPECT_EQ(row.count, 1000u);
  EXPECT_DOUBLE_EQ(row.time_us_p50, 2);
  EXPECT_DOUBLE_EQ(row.time_us_max, 90);
  EXPECT_DOUBLE_EQ(row.time_us_mean, 31);
  EXPECT_DOUBLE_EQ(row.algbw_GBps, 2);
  EXPECT_DOUBLE_EQ(row.busbw_GBps, 3);
  EXPECT_DOUBLE_EQ(row.limit_percent, 25);
  EXPECT_EQ(row.limit_by, "cores");
  EXPECT_EQ(row.slowest_rank, 2);
  EXPECT_EQ(row.core_round_trip_ns_before, 110);
  EXPECT_EQ(row.core_round_trip_ns_after, 500);
  EXPECT_EQ(row.distance_changed, true);
}

TEST(Result, OneRankInPlaceMovesNothingButByWayOfTheHost) {
  const auto is_idle = [](std::string algorithm, int n_ranks, bool in_place, std::optional<std::string> chosen = {}) {
    Measured m = measured({1e-6});
    m.algorithm = std::move(algorithm);
    m.chosen = std::move(chosen);
    m.n_ranks = n_ranks;
    m.in_place = in_place;
    return make_row(m).moves_nothing;
  };
  EXPECT_TRUE(is_idle("ring", 1, true));
  EXPECT_TRUE(is_idle("nccl", 1, true));
  EXPECT_TRUE(is_idle("auto", 1, true, "nccl"));
  EXPECT_FALSE(is_idle("staged", 1, true));
  EXPECT_FALSE(is_idle("auto", 1, true, "staged"));
  EXPECT_FALSE(is_idle("nccl", 1, false)) << "a copy";
  EXPECT_FALSE(is_idle("nccl", 2, true));
}

TEST(Result, ClaimsOnlyWhatTheSampleSupports) {
  const Row few = make_row(measured(std::vector<double>(5, 1e-6)));
  EXPECT_FALSE(few.time_us_p50_low.has_value());
  EXPECT_FALSE(few.time_us_p99.has_value());
  const Row many = make_row(measured(std::vector<double>(100, 1e-6)));
  EXPECT_TRUE(many.time_us_p50_low.has_value());
  EXPECT_TRUE(many.time_us_p99.has_value());
}

TEST(Result, SamplesAreKeptOnRequest) {
  Measured m = measured({1e-6, 2e-6});
  EXPECT_TRUE(make_row(m).samples_us.empty());
  m.keep_samples = true;
  EXPECT_EQ(make_row(m).samples_us, (std::vector<double>{1, 2}));
}

TEST(Result, TheBestIsTheFastestThatIsRight) {
  std::vector<Row> rows(3);
  rows[0].time_us_p50 = 3;
  rows[1].time_us_p50 = 1;
  rows[1].wrong = 1;
  rows[2].time_us_p50 = 2;
  EXPECT_FALSE(is_best(rows[0], rows));
  EXPECT_FALSE(is_best(rows[1], rows));
  EXPECT_TRUE(is_best(rows[2], rows));
}

TEST(Result, AutoIsNotBestBesideWhatItRan) {
  std::vector<Row> rows(3);
  rows[0].algorithm = "ring";
  rows[0].time_us_p50 = 2;
  rows[1].algorithm = "auto";
  rows[1].chosen = "ring";
  rows[1].time_us_p50 = 1;
  rows[2].algorithm = "shm";
  rows[2].time_us_p50 = 3;
  EXPECT_TRUE(is_best(rows[0], rows)) << "auto is the same, only timed again";
  EXPECT_FALSE(is_best(rows[1], rows));
  rows[0].algorithm = "mpi";
  EXPECT_TRUE(is_best(rows[1], rows));
  EXPECT_FALSE(is_best(rows[0], rows));
}

}  // namespace
}  // namespace lockstep::reduce_all

#include "data/load/batch_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::data {
namespace {

struct Case {
  std::uint64_t n = 0, n_ranks = 1, global_batch = 1;
};

std::string describe(const Case& c) {
  return "N " + std::to_string(c.n) + ", W " + std::to_string(c.n_ranks) + ", B " + std::to_string(c.global_batch);
}

std::vector<BatchPlan> plans_of(const Case& c, Deal deal, bool drop_last = false) {
  std::vector<BatchPlan> plans;
  for (std::uint64_t rank = 0; rank < c.n_ranks; ++rank)
    plans.emplace_back(BatchPlan::Options{.n_samples = c.n,
                                          .global_batch = c.global_batch,
                                          .deal = deal,
                                          .drop_last = drop_last,
                                          .rank = rank,
                                          .n_ranks = c.n_ranks});
  return plans;
}

/// What all ranks take in one batch.
struct Taken {
  std::vector<std::uint64_t> positions;  ///< sorted
  std::uint64_t least = 0, most = 0;     ///< of a rank
};

Taken take(const std::vector<BatchPlan>& plans, std::uint64_t batch) {
  Taken taken;
  taken.least = plans.front().share(batch).n;
  for (const BatchPlan& plan : plans) {
    const Share share = plan.share(batch);
    EXPECT_LE(share.n, plan.most());
    EXPECT_EQ(share.n_global, plans.front().share(batch).n_global);
    for (std::uint64_t i = 0; i < share.n; ++i) taken.positions.push_back(share.first + i * share.stride);
    taken.least = std::min(taken.least, share.n);
    taken.most = std::max(taken.most, share.n);
  }
  std::sort(taken.positions.begin(), taken.positions.end());
  EXPECT_EQ(taken.positions.size(), plans.front().share(batch).n_global);
  return taken;
}

class BatchPlanCases : public testing::TestWithParam<Case> {};

// Positions [b B, (b + 1) B) make batch b, however many ranks there are, and ranks differ by one sample at most.
void expect_batches_of(const Case& c, Deal deal, std::uint64_t n_positions) {
  const std::vector<BatchPlan> plans = plans_of(c, deal);
  std::uint64_t next = 0;
  for (const BatchPlan& plan : plans) ASSERT_EQ(plan.n_batches(), plans.front().n_batches());
  for (std::uint64_t batch = 0; batch < plans.front().n_batches(); ++batch) {
    const Taken taken = take(plans, batch);
    EXPECT_LE(taken.most - taken.least, 1u);
    EXPECT_EQ(taken.positions.size(), std::min(c.global_batch, n_positions - next));
    for (const std::uint64_t position : taken.positions) ASSERT_EQ(position, next++);
  }
  EXPECT_EQ(next, n_positions);
}

TEST_P(BatchPlanCases, SlicesTakeEveryPositionOnceInOrder) {
  SCOPED_TRACE(describe(GetParam()));
  expect_batches_of(GetParam(), Deal::slices, GetParam().n);
}

TEST_P(BatchPlanCases, SlicesAreInTheOrderOfRanks) {
  for (const std::vector<BatchPlan> plans = plans_of(GetParam(), Deal::slices); const BatchPlan& plan : plans) {
    const std::uint64_t batch = plan.n_batches() / 2;
    if (&plan == &plans.front() || batch == plan.n_batches()) continue;
    const Share before = std::prev(&plan)->share(batch);
    EXPECT_EQ(plan.share(batch).first, before.first + before.n);
    EXPECT_EQ(plan.share(batch).stride, 1u);
  }
}

TEST_P(BatchPlanCases, StridedPadsToAMultipleOfTheRanks) {
  const Case& c = GetParam();
  SCOPED_TRACE(describe(c));
  expect_batches_of(c, Deal::strided, (c.n + c.n_ranks - 1) / c.n_ranks * c.n_ranks);
  for (const BatchPlan& plan : plans_of(c, Deal::strided)) {
    std::uint64_t n = 0;
    for (std::uint64_t batch = 0; batch < plan.n_batches(); ++batch) n += plan.share(batch).n;
    EXPECT_EQ(n, (c.n + c.n_ranks - 1) / c.n_ranks);
  }
}

TEST_P(BatchPlanCases, StridedGivesPositionsToTheirRanks) {
  std::uint64_t rank = 0;
  for (const BatchPlan& plan : plans_of(GetParam(), Deal::strided)) {
    for (std::uint64_t batch = 0; batch < plan.n_batches(); ++batch) {
      const Share share = plan.share(batch);
      for (std::uint64_t i = 0; i < share.n; ++i)
        ASSERT_EQ((share.first + i * share.stride) % GetParam().n_ranks, rank) << describe(GetParam());
    }
    ++rank;
  }
}

TEST_P(BatchPlanCases, RangesAreContiguousAndExact) {
  const Case& c = GetParam();
  SCOPED_TRACE(describe(c));
  const std::vector<BatchPlan> plans = plans_of(c, Deal::ranges, true);
  std::uint64_t next = 0, n_global = 0;
  for (const BatchPlan& plan : plans) {
    ASSERT_EQ(plan.n_batches(), plans.front().n_batches());
    for (std::uint64_t batch = 0; batch < plan.n_batches(); ++batch) {
      const Share share = plan.share(batch);
      if (share.n == 0) continue;
      ASSERT_EQ(share.first, next);
      next += share.n;
    }
  }
  EXPECT_EQ(next, c.n);
  for (std::uint64_t batch = 0; batch < plans.front().n_batches(); ++batch) {
    const Taken taken = take(plans, batch);
    EXPECT_LE(taken.most - taken.least, 1u);
    n_global += plans.front().share(batch).n_global;
    EXPECT_GT(plans.front().share(batch).n_global, 0u);
  }
  EXPECT_EQ(n_global, c.n);
}

TEST_P(BatchPlanCases, DropLastLeavesOutTheSmallerBatchOnly) {
  const Case& c = GetParam();
  for (const Deal deal : {Deal::slices, Deal::strided}) {
    const std::vector<BatchPlan> plans = plans_of(c, deal, true), whole = plans_of(c, deal);
    for (std::uint64_t batch = 0; batch < plans.front().n_batches(); ++batch)
      EXPECT_EQ(plans.front().share(batch).n_global, c.global_batch);
    const std::uint64_t n_dropped = whole.front().n_batches() - plans.front().n_batches();
    if (n_dropped == 0) continue;
    EXPECT_EQ(n_dropped, 1u);
    EXPECT_LT(whole.front().share(plans.front().n_batches()).n_global, c.global_batch) << describe(c);
  }
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const std::uint64_t n : {0, 1, 7, 64, 100})
    for (std::uint64_t n_ranks = 1; n_ranks <= 8; ++n_ranks)
      for (const std::uint64_t global_batch : {1, 3, 8, 33}) cases.push_back({n, n_ranks, global_batch});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Small, BatchPlanCases, testing::ValuesIn(all_cases()));

/// The second of two batches has `n` samples.
std::vector<Share> second_batch(BatchPlan::Options options, std::uint64_t n) {
  std::vector<Share> shares;
  options.n_samples = options.global_batch + n;
  for (options.rank = 0; options.rank < options.n_ranks; ++options.rank) {
    const BatchPlan plan{options};
    shares.push_back(plan.share(1));
    EXPECT_EQ(shares.back().n_global, n);
    EXPECT_LE(shares.back().n, plan.most());
    EXPECT_LE(plan.most(), (options.global_batch + options.n_ranks - 1) / options.n_ranks);
    shares.back().first -= options.global_batch;
  }
  return shares;
}

std::vector<std::uint64_t> sizes_of(const std::vector<Share>& shares) {
  std::vector<std::uint64_t> sizes;
  for (const Share& share : shares) sizes.push_back(share.n);
  return sizes;
}

/// Sizes of batches around multiples of `unit`.
std::vector<std::uint64_t> smaller_batches(std::uint64_t unit, std::uint64_t global_batch) {
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t n = unit; n <= global_batch; n += unit)
    for (const std::uint64_t each : {n - unit + 1, n - 1, n})
      if (each > 0) sizes.push_back(each);
  return sizes;
}

TEST(BatchPlan, UnitsStayTogether) {
  const BatchPlan::Options four{.global_batch = 64, .unit = 16, .n_ranks = 4};
  EXPECT_EQ(sizes_of(second_batch(four, 16)), (std::vector<std::uint64_t>{0, 0, 0, 16}));
  EXPECT_EQ(sizes_of(second_batch(four, 33)), (std::vector<std::uint64_t>{0, 16, 16, 1}));
  EXPECT_EQ(sizes_of(second_batch(four, 64)), (std::vector<std::uint64_t>{16, 16, 16, 16}));
  const BatchPlan::Options two{.global_batch = 16, .unit = 4, .n_ranks = 2};
  EXPECT_EQ(sizes_of(second_batch(two, 8)), (std::vector<std::uint64_t>{4, 4}));
  EXPECT_EQ(sizes_of(second_batch(two, 10)), (std::vector<std::uint64_t>{4, 6}));
}

// Ranks have contiguous slices that begin at multiples of the unit: what lies between two of these lies on one rank.
TEST(BatchPlan, UnitsAreTheSameForAnyNumberOfRanks) {
  for (const std::uint64_t unit : {1, 4, 16}) {
    for (std::uint64_t n_ranks = 1; n_ranks <= 5; ++n_ranks) {
      const BatchPlan::Options options{.global_batch = 60 * unit, .unit = unit, .n_ranks = n_ranks};
      for (const std::uint64_t n : smaller_batches(unit, options.global_batch)) {
        SCOPED_TRACE(testing::Message() << "unit " << unit << ", ranks " << n_ranks << ", n " << n);
        std::uint64_t next = 0;
        for (const Share& share : second_batch(options, n)) {
          ASSERT_EQ(share.first, next);
          ASSERT_TRUE(share.first % unit == 0 || share.n == 0);
          next += share.n;
        }
        ASSERT_EQ(next, n);
      }
    }
  }
}

TEST(BatchPlan, RanksTogetherCutTheirUnitsEvenly) {
  for (const auto& [n_ranks, n_together] : {std::pair{2, 2}, {3, 3}, {4, 2}, {4, 4}, {5, 5}, {6, 3}}) {
    const auto size = static_cast<std::size_t>(n_together);
    const BatchPlan::Options options{.global_batch = 60 * static_cast<std::uint64_t>(n_ranks / n_together),
                                     .unit = 60,
                                     .n_together = size,
                                     .n_ranks = static_cast<std::uint64_t>(n_ranks)};
    for (std::uint64_t n = 1; n <= options.global_batch; ++n) {
      SCOPED_TRACE(testing::Message() << n_together << " of " << n_ranks << " ranks, n " << n);
      const std::vector<Share> shares = second_batch(options, n);
      std::vector<std::uint64_t> units;
      std::uint64_t next = 0;
      for (std::size_t first = 0; first < shares.size(); first += size) {
        std::vector<std::uint64_t> sizes;
        for (const Share& share : std::span{shares}.subspan(first, size)) {
          ASSERT_EQ(share.first, next);
          next += share.n;
          sizes.push_back(share.n);
        }
        const auto [least, most] = std::ranges::minmax(sizes);
        ASSERT_LE(most - least, 1u);
        const std::uint64_t n_unit = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
        if (n_unit > 0) units.push_back(n_unit);
      }
      std::vector<std::uint64_t> expected(n / 60, 60);
      if (n % 60 > 0) expected.push_back(n % 60);
      ASSERT_EQ(units, expected);
    }
  }
}

TEST(BatchPlan, UnitsDoNotChangeFullBatches) {
  for (std::uint64_t n_ranks = 1; n_ranks <= 5; ++n_ranks) {
    for (const std::uint64_t unit : {1, 4, 16})
      EXPECT_EQ(sizes_of(second_batch({.global_batch = 60 * unit, .unit = unit, .n_ranks = n_ranks}, 60 * unit)),
                std::vector<std::uint64_t>(n_ranks, 60 * unit / n_ranks));
    const BatchPlan::Options uneven{.global_batch = 13, .n_ranks = n_ranks};
    BatchPlan::Options together = uneven;
    together.unit = 13;
    together.n_together = n_ranks;
    for (std::uint64_t n = 1; n <= 13; ++n)
      EXPECT_EQ(sizes_of(second_batch(together, n)), sizes_of(second_batch(uneven, n)));
  }
}

TEST(BatchPlan, ASetSmallerThanABatchFitsToo) {
  for (std::uint64_t n_ranks = 1; n_ranks <= 5; ++n_ranks) {
    for (std::uint64_t n = 1; n < 240; ++n) {
      std::uint64_t n_all = 0;
      for (std::uint64_t rank = 0; rank < n_ranks; ++rank) {
        const BatchPlan plan{{.n_samples = n, .global_batch = 240, .unit = 4, .rank = rank, .n_ranks = n_ranks}};
        n_all += plan.share(0).n;
        EXPECT_LE(plan.share(0).n, plan.most()) << n;
        EXPECT_LE(plan.most(), std::min(n, 240 / n_ranks)) << n;
      }
      EXPECT_EQ(n_all, n);
    }
  }
}

TEST(BatchPlan, HugeSetsDoNotOverflow) {
  const std::uint64_t n = std::uint64_t{1} << 60;
  const Case c{n + 5, 100'000, std::uint64_t{1} << 40};
  const std::vector<BatchPlan> plans = plans_of(c, Deal::ranges);
  const Share first = plans.front().share(0), last = plans.back().share(0);
  EXPECT_EQ(first.first, 0u);
  EXPECT_EQ(last.first, c.n - c.n / c.n_ranks - 1);  // the last range is one of the longer ones
  EXPECT_EQ(plans_of(c, Deal::slices).back().share((c.n - 1) / c.global_batch).n_global, 5u);
}

}  // namespace
}  // namespace lockstep::data

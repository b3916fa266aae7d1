#include "parallel/bucket_plan.hpp"

#include <gtest/gtest.h>

#include "parallel/placement.hpp"
#include "unit/parallel/ranks.hpp"

namespace lockstep::parallel {
namespace {

/// Slots per bucket.
std::vector<std::size_t> cut(const std::vector<std::size_t>& sizes, const BucketOptions& options) {
  const auto slots = support::make_slots(sizes);
  std::vector<std::size_t> counts;
  for (const core::Slice& bucket : plan_buckets(slots, options)) counts.push_back(pieces_in(slots, bucket).size());
  return counts;
}

using Counts = std::vector<std::size_t>;

TEST(BucketPlan, FirstAndLastAreSmallAndNoneExceedsItsSize) {
  const BucketOptions options{.target{64 * 10}, .first{64 * 2}, .last{64 * 3}};  // in slots of 16 elements
  EXPECT_EQ(cut(std::vector<std::size_t>(30, 16), options), (Counts{2, 10, 10, 5, 3}));
  EXPECT_EQ(cut(std::vector<std::size_t>(3, 16), options), (Counts{3}));
  EXPECT_EQ(cut(std::vector<std::size_t>(4, 16), options), (Counts{1, 3}));
  EXPECT_EQ(cut({}, options), Counts{});
}

TEST(BucketPlan, ALargeSlotIsABucketOfItsOwn) {
  const BucketOptions options{.target{64 * 10}, .first{64 * 2}, .last{64 * 3}};
  EXPECT_EQ(cut({16, 16, 16 * 50, 16, 16 * 20, 16, 16, 16, 16, 16}, options), (Counts{2, 1, 1, 1, 2, 3}));
  EXPECT_EQ(cut({16 * 50}, options), (Counts{1}));
  EXPECT_EQ(cut({16, 16 * 50}, options), (Counts{1, 1}));
}

TEST(BucketPlan, BucketsAreTheWholeArena) {
  const auto slots = support::odd_slots();
  const auto buckets = plan_buckets(slots, {.target{20'000}, .first{1'000}, .last{1'000}});
  ASSERT_GT(buckets.size(), 3U);
  std::size_t at = 0;
  for (const core::Slice& bucket : buckets) {
    EXPECT_EQ(bucket.offset, at);
    at = bucket.end();
  }
  EXPECT_EQ(at, arena_elements(slots));
}

TEST(Placement, OwnersAreAsManyAsTheSmallestNodeHasRanks) {
  EXPECT_EQ(place({0, 0, 0, 0}, false).n_owners, 4);
  const Placement uneven = place({0, 1, 0, 1, 1}, false);
  EXPECT_EQ(uneven.n_nodes, 2);
  EXPECT_EQ(uneven.n_owners, 2);
  EXPECT_EQ(place({0, 0, 1}, false).n_owners, 1);
}

TEST(Placement, DeterministicNodesAreSubtrees) {
  EXPECT_EQ(place({0, 0, 1, 1}, true).n_owners, 2);
  for (const support::Nodes& nodes : {support::Nodes{0, 1, 0, 1}, {0, 0, 0, 1}, {0, 0, 1, 0}}) {
    const Placement placement = place(nodes, true);
    EXPECT_EQ(placement.nodes, (support::Nodes{0, 1, 2, 3})) << support::describe(nodes);
    EXPECT_EQ(placement.n_nodes, 4);
    EXPECT_EQ(placement.n_owners, 1);
  }
}

}  // namespace
}  // namespace lockstep::parallel

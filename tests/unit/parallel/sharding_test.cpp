#include "parallel/sharding.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

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

const BucketOptions small{.target{20'000}, .first{1'000}, .last{1'000}};

/// Slots with sizes like those of layers, which are cut at lengths of their own.
std::vector<Slot> layers() {
  std::vector<Slot> slots = support::make_slots({10, 1'280, 36'864, 64, 1, 0, 9'999, 73'728});
  slots[1].block = 20;
  slots[2].block = 4'608;
  slots[7].block = 73'728;
  return slots;
}

/// A matrix of 768x768 in a unit of plan_units() for five owners, with blocks of this many elements; and a vector.
Sharding shard_matrix(std::size_t block) {
  return {{{.name = "matrix", .slice = {0, 768 * 768}, .block = block}, {.name = "vector", .slice = {593'920, 16}}},
          {{0, 593'920}, {593'920, 16}},
          5};
}

Sharding shard(const std::vector<Slot>& slots, std::size_t n_owners, const BucketOptions& options = small) {
  return {slots, plan_buckets(slots, options), n_owners};
}

TEST(Sharding, CutsAreBetweenBlocksOfChannelsOnCacheLines) {
  const auto length_of = [](std::size_t block) { return cut_length({.name = "", .block = block}); };
  EXPECT_EQ(length_of(1), block_elements);
  EXPECT_EQ(length_of(9), 1'152U);
  EXPECT_EQ(length_of(4'608), 4'608U);
  EXPECT_EQ(length_of(4'609), 16 * 4'609U);
}

// Parts of equal length are what libraries are fast with.
TEST(Sharding, IsEvenIfBlocksAllowIt) {
  EXPECT_EQ(shard_matrix(16).slices_of(0)[0], (core::Slice{0, 118'784}));
  EXPECT_EQ(shard_matrix(16).slices_of(4)[0], (core::Slice{4 * 118'784, 118'784}));
  EXPECT_EQ(shard_matrix(768).slices_of(0)[0], (core::Slice{0, 118'272})) << "77 times two rows";
}

TEST(Sharding, SlicesAreTheWholeArenaCutBetweenBlocks) {
  for (const std::vector<Slot>& slots : {layers(), support::odd_slots()}) {
    for (std::size_t n_owners = 1; n_owners <= 9; ++n_owners) {
      const Sharding sharding = shard(slots, n_owners);
      for (std::size_t b = 0; b < sharding.buckets().size(); ++b) {
        std::size_t at = sharding.buckets()[b].offset;
        for (std::size_t owner = 0; owner < n_owners; ++owner) {
          const core::Slice slice = sharding.slices_of(owner)[b];
          EXPECT_EQ(slice.offset, at);
          at = slice.end();
          for (const Piece& piece : pieces_in(slots, slice))
            EXPECT_EQ((piece.slice.offset - slots[piece.slot].slice.offset) % cut_length(slots[piece.slot]), 0U);
        }
        EXPECT_EQ(at, sharding.buckets()[b].end());
      }
    }
  }
}

TEST(Sharding, IsEvenButForBlocks) {
  const std::vector<Slot> slots = layers();
  std::size_t longest = 0;
  for (const Slot& slot : slots) longest = std::max(longest, cut_length(slot));
  for (std::size_t n_owners = 1; n_owners <= 9; ++n_owners) {
    const Sharding sharding = shard(slots, n_owners, {.target{1 << 20}, .first{1 << 20}, .last{1 << 20}});
    ASSERT_EQ(sharding.buckets().size(), 1U);
    for (std::size_t owner = 0; owner < n_owners; ++owner)
      EXPECT_LE(sharding.slices_of(owner)[0].count, sharding.n_elements() / n_owners + longest);
  }
}

TEST(Sharding, ThereIsNoOwnerBeyondTheLast) {
  const Sharding sharding = shard(layers(), 3);
  EXPECT_EQ(sharding.n_owners(), 3U);
  EXPECT_TRUE(sharding.slices_of(3).empty());
  EXPECT_TRUE(sharding.shares_of(3).empty());
}

/// What all shares of all owners update, by element.
std::vector<int> times_updated(const Sharding& sharding) {
  std::vector<int> times(sharding.n_elements());
  for (std::size_t owner = 0; owner < sharding.n_owners(); ++owner)
    for (std::size_t part = 0; part < sharding.n_nodes(); ++part)
      for (const Share& share : sharding.shares_of(owner, part))
        for (std::size_t i = share.updated.offset; i < share.updated.end(); ++i) ++times[i];
  return times;
}

TEST(Sharding, NodesDivideTheSlicesOfTheirOwners) {
  for (const std::vector<Slot>& slots : {layers(), support::odd_slots()}) {
    for (std::size_t n_owners = 1; n_owners <= 3; ++n_owners) {
      for (std::size_t n_nodes = 2; n_nodes <= 5; ++n_nodes) {
        const Sharding sharding{slots, plan_buckets(slots, small), n_owners, false, n_nodes};
        EXPECT_EQ(sharding.n_owners(), n_owners);
        EXPECT_EQ(times_updated(sharding), std::vector<int>(sharding.n_elements(), 1));
        for (std::size_t owner = 0; owner < n_owners; ++owner) {
          const std::vector<Share> of_first = sharding.shares_of(owner);
          for (std::size_t part = 0; part < n_nodes; ++part) {
            const std::vector<Share> shares = sharding.shares_of(owner, part);
            ASSERT_EQ(shares.size(), sharding.buckets().size());
            for (std::size_t b = 0; b < shares.size(); ++b) {
              EXPECT_EQ(shares[b].summed, of_first[b].summed);
              ASSERT_EQ(shares[b].cuts.size(), n_nodes + 1);
              EXPECT_EQ(shares[b].cuts.back(), shares[b].summed.count);
              EXPECT_EQ(shares[b].part().offset, shares[b].cuts[part]);
              EXPECT_EQ(shares[b].part().end(), shares[b].cuts[part + 1]);
            }
          }
        }
      }
    }
  }
}

TEST(Sharding, NodesDoNotDivideBucketsWithRows) {
  std::vector<Slot> slots = layers();
  slots[2].row_elements = 64;
  const Sharding sharding{slots, plan_buckets(slots, small), 2, false, 3};
  const std::vector<int> times = times_updated(sharding);
  std::size_t n_with_rows = 0;
  for (const core::Slice& bucket : sharding.buckets()) {
    const bool has_rows = !intersection(bucket, slots[2].slice).empty();
    n_with_rows += has_rows ? 1 : 0;
    for (std::size_t i = bucket.offset; i < bucket.end(); ++i) ASSERT_EQ(times[i], has_rows ? 3 : 1) << i;
  }
  EXPECT_EQ(n_with_rows, 1U);
}

// A bucket is complete with the last of its slots, and not before.
TEST(Sharding, CountsCompleteBuckets) {
  const Sharding sharding = shard(support::odd_slots(), 2);
  for (std::size_t slot = 0; slot < sharding.slots().size(); ++slot) {
    std::size_t n = 0;
    for (const core::Slice& bucket : sharding.buckets())
      n += std::ranges::all_of(pieces_in(sharding.slots(), bucket), [&](const Piece& p) { return p.slot <= slot; }) ? 1
                                                                                                                    : 0;
    EXPECT_EQ(sharding.n_complete(slot), n) << slot;
  }
}

TEST(Sharding, BlocksAreTheSameForAnyOwners) {
  const std::vector<Slot> slots = layers();
  constexpr std::pair<std::size_t, std::size_t> owners[] = {{1, 1}, {2, 1}, {3, 1}, {4, 1},
                                                            {5, 1}, {2, 2}, {1, 3}, {3, 4}};
  for (const auto& [n_of_node, n_nodes] : owners) {
    const std::size_t n_owners = n_of_node * n_nodes;
    const Sharding sharding{slots, plan_buckets(slots, small), n_of_node, false, n_nodes};
    for (std::size_t b = 0; b < sharding.buckets().size(); ++b) {
      const std::vector<Piece> whole = blocks_in(slots, sharding.buckets()[b]);
      std::vector<Piece> together;
      for (std::size_t owner = 0; owner < n_owners; ++owner)
        for (const Piece& block : blocks_in(slots, sharding.slices_of(owner)[b])) together.push_back(block);
      EXPECT_EQ(together, whole);
      for (const Piece& block : whole) EXPECT_LT(block.slice.count, 2 * block_elements + alignment);
    }
  }
}

// Nobody gathers a part of a unit, so a table whose touched rows are summed keeps all of its unit whole.
TEST(MakeSharding, AUnitWithRowsIsNone) {
  std::vector<Slot> slots = support::make_slots({100, 200, 300, 400, 500});
  const std::size_t units[] = {0, 0, 0, 1, 1};
  for (std::size_t i = 0; i < slots.size(); ++i) slots[i].unit = units[i];
  const auto units_with = [&](std::size_t row_elements) {
    slots[1].row_elements = row_elements;
    const Sharding sharding = make_sharding(Strategy::fsdp, slots, {}, place({0, 1}, false));
    std::vector<std::optional<std::size_t>> of_slots;
    for (std::size_t slot = 0; slot < slots.size(); ++slot)
      of_slots.push_back(sharding.units()[sharding.bucket_of(slot)]);
    return of_slots;
  };
  using Found = std::vector<std::optional<std::size_t>>;
  EXPECT_EQ(units_with(0), (Found{0, 0, 0, 1, 1}));
  EXPECT_EQ(units_with(10), (Found{{}, {}, {}, 1, 1}));
}

}  // namespace
}  // namespace lockstep::parallel

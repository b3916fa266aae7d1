#include "data/load/sampler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/rng.hpp"

namespace lockstep::data {
namespace {

/// The first `n` positions of a permutation or a sampler.
template <class Positions>
std::vector<std::uint64_t> all_of(const Positions& order, std::uint64_t n) {
  std::vector<std::uint64_t> values;
  for (std::uint64_t position = 0; position < n; ++position) values.push_back(order.at(position));
  return values;
}

std::vector<std::uint64_t> counted(std::uint64_t n) {
  std::vector<std::uint64_t> values(n);
  std::iota(values.begin(), values.end(), std::uint64_t{0});
  return values;
}

std::vector<std::uint64_t> sorted(std::vector<std::uint64_t> values) {
  std::sort(values.begin(), values.end());
  return values;
}

TEST(KeyedPermutation, IsABijectionOfEverySize) {
  for (std::uint64_t n = 0; n < 300; ++n)
    for (std::uint64_t key = 0; key < 3; ++key)
      ASSERT_EQ(sorted(all_of(KeyedPermutation{n, key, 5}, n)), counted(n)) << "n " << n << ", key " << key;
  for (const std::uint64_t n : {1000, 4096, 65535, 65536, 65537})
    ASSERT_EQ(sorted(all_of(KeyedPermutation{n, 1, 0}, n)), counted(n)) << "n " << n;
}

TEST(KeyedPermutation, StaysInsideAndCollidesNowhereInHugeSets) {
  core::Random random{1};
  for (const std::uint64_t n :
       {(std::uint64_t{1} << 40) - 1, std::uint64_t{1} << 40, (std::uint64_t{1} << 40) + 1, ~std::uint64_t{0}}) {
    const KeyedPermutation permutation{n, 7, 8};
    std::map<std::uint64_t, std::uint64_t> position_of;
    for (int i = 0; i < 20'000; ++i) {
      const std::uint64_t position = i < 10'000 ? static_cast<std::uint64_t>(i) : random.below(n);
      const std::uint64_t value = permutation.at(position);
      ASSERT_LT(value, n);
      const auto [entry, is_new] = position_of.emplace(value, position);
      ASSERT_TRUE(is_new || entry->second == position) << "collision at " << value;
    }
    EXPECT_LT(permutation.at(n - 1), n);
  }
}

// An order once trained with must be had again: these values never change.
TEST(KeyedPermutation, KnownAnswers) {
  EXPECT_EQ(all_of(KeyedPermutation{10, 1, 0}, 10), (std::vector<std::uint64_t>{6, 2, 8, 5, 3, 9, 0, 7, 4, 1}));
  const KeyedPermutation permutation{60'000, 0x0123'4567'89ab'cdef, 3};
  EXPECT_EQ((std::array{permutation.at(0), permutation.at(1), permutation.at(59'999)}),
            (std::array<std::uint64_t, 3>{49'235, 267, 37'794}));
}

TEST(KeyedPermutation, KeysAndStreamsDiffer) {
  std::set<std::vector<std::uint64_t>> orders;
  for (std::uint64_t key = 0; key < 20; ++key)
    for (std::uint64_t stream = 0; stream < 20; ++stream)
      orders.insert(all_of(KeyedPermutation{100, key, stream}, 100));
  EXPECT_EQ(orders.size(), 400u);
}

// Where each position goes, and where each neighbour goes relative to it, over many keys: chi-squared against uniform.
TEST(KeyedPermutation, PositionsAndNeighboursGoEverywhereEvenly) {
  constexpr std::uint64_t n = 64;
  constexpr int n_keys = 64'000;
  std::array<std::array<int, n>, 3> hits{};
  for (std::uint64_t key = 0; key < n_keys; ++key) {
    const KeyedPermutation permutation{n, key, 0};
    const std::uint64_t a = permutation.at(0), b = permutation.at(1);
    ++hits[0][a];
    ++hits[1][permutation.at(n - 1)];
    ++hits[2][(b + n - a) % n];
  }
  EXPECT_EQ(hits[2][0], 0);
  for (const auto& row : hits) {
    const double n_cells = row[0] == 0 ? n - 1 : n;
    const double expected = n_keys / n_cells;
    double chi_squared = 0;
    for (const int count : row)
      if (count > 0 || row[0] != 0) chi_squared += (count - expected) * (count - expected) / expected;
    EXPECT_LT(chi_squared, n_cells + 5 * std::sqrt(2 * n_cells));
    EXPECT_GT(chi_squared, n_cells - 5 * std::sqrt(2 * n_cells));
  }
}

// All 24 orders of 4 elements come up evenly over the keys: the smallest sets are permuted fairly, too.
TEST(KeyedPermutation, SmallSetsReachEveryOrder) {
  constexpr int n_keys = 48'000;
  std::map<std::vector<std::uint64_t>, int> n_hits;
  for (std::uint64_t key = 0; key < n_keys; ++key) ++n_hits[all_of(KeyedPermutation{4, key, 1}, 4)];
  EXPECT_EQ(n_hits.size(), 24u);
  for (const auto& [order, hits] : n_hits) EXPECT_NEAR(hits, n_keys / 24, n_keys / 24 / 4);
}

std::vector<std::uint64_t> uneven_chunks() { return {0, 10, 20, 25, 35, 45, 50, 60, 61, 62, 70, 80, 90}; }
constexpr std::uint64_t n_uneven = 97;

TEST(Sampler, EveryOrderHasEverySampleOnceInEveryEpoch) {
  for (const Order order : all_orders) {
    for (const std::uint64_t window : {1, 3, 5, 100}) {
      Sampler sampler{n_uneven, {.order = order, .seed = 9, .window_chunks = window}, uneven_chunks()};
      std::set<std::vector<std::uint64_t>> orders;
      for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
        sampler.begin_epoch(epoch);
        orders.insert(all_of(sampler, n_uneven));
        ASSERT_EQ(sorted(all_of(sampler, n_uneven)), counted(n_uneven)) << name(order) << ", window " << window;
      }
      EXPECT_EQ(orders.size(), order == Order::sequential ? 1u : 4u) << name(order);
    }
  }
}

// There is one chunk, so that no other order of chunks hides what happens within it.
TEST(Sampler, BlockedHasAnotherOrderWithinTheWindowInEveryEpoch) {
  Sampler sampler{50, {.order = Order::blocked, .seed = 9, .window_chunks = 1}, {0}};
  std::set<std::vector<std::uint64_t>> orders;
  for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
    sampler.begin_epoch(epoch);
    orders.insert(all_of(sampler, 50));
  }
  EXPECT_EQ(orders.size(), 4u);
}

TEST(Sampler, EmptySetsAreFine) {
  for (const Order order : all_orders) {
    Sampler sampler{0, {.order = order}};
    EXPECT_NO_THROW(sampler.begin_epoch(3));
  }
}

TEST(Sampler, KeyedIsThePermutationOfSeedAndEpoch) {
  Sampler sampler{1000, {.seed = 5}};
  sampler.begin_epoch(6);
  EXPECT_EQ(all_of(sampler, 1000), all_of(KeyedPermutation{1000, 5, 6}, 1000));
}

TEST(Sampler, SequentialCounts) { EXPECT_EQ(all_of(Sampler{9, {.order = Order::sequential}}, 9), counted(9)); }

TEST(Sampler, BlockedReadsNoMoreChunksAtATimeThanTheWindow) {
  const std::vector<std::uint64_t> starts = uneven_chunks();
  Sampler sampler{n_uneven, {.order = Order::blocked, .window_chunks = 3}, starts};
  std::vector<std::uint64_t> chunks;
  for (const std::uint64_t id : all_of(sampler, n_uneven))
    chunks.push_back(static_cast<std::uint64_t>(std::upper_bound(starts.begin(), starts.end(), id) - starts.begin()));
  // Chunks appear in groups of three that never come back.
  std::set<std::uint64_t> done, open;
  for (const std::uint64_t chunk : chunks) {
    ASSERT_FALSE(done.contains(chunk));
    open.insert(chunk);
    if (open.size() <= 3) continue;
    open.erase(chunk);
    done.merge(open);
    open = {chunk};
  }
}

TEST(Sampler, BlockedMixesWithinTheWindow) {
  Sampler sampler{100, {.order = Order::blocked, .window_chunks = 2}, {0, 50}};
  const std::vector<std::uint64_t> ids = all_of(sampler, 100);
  const auto from_first = std::count_if(ids.begin(), ids.begin() + 50, [](std::uint64_t id) { return id < 50; });
  EXPECT_GT(from_first, 10);
  EXPECT_LT(from_first, 40);
}

/// The definition, by brute force: how far apart neighbours of the set are in the order, over n/3.
double measured_mixing(Sampler& sampler, std::uint64_t n) {
  double sum = 0;
  constexpr int n_epochs = 30;
  for (std::uint64_t epoch = 0; epoch < n_epochs; ++epoch) {
    sampler.begin_epoch(epoch);
    std::vector<double> position(n);
    for (std::uint64_t p = 0; p < n; ++p) position[sampler.at(p)] = static_cast<double>(p);
    for (std::uint64_t id = 1; id < n; ++id) sum += std::abs(position[id] - position[id - 1]);
  }
  return sum / n_epochs / static_cast<double>(n - 1) / (static_cast<double>(n) / 3);
}

TEST(Sampler, MixingIsWhatIsMeasured) {
  constexpr std::uint64_t n = 6'000, chunk = 100;
  std::vector<std::uint64_t> starts;
  for (std::uint64_t first = 0; first < n; first += chunk) starts.push_back(first);
  for (const std::uint64_t window : {1, 4, 20, 60}) {
    Sampler sampler{n, {.order = Order::blocked, .window_chunks = window}, starts};
    const double measured = measured_mixing(sampler, n);
    EXPECT_NEAR(sampler.mixing(), measured, 0.05 * measured) << "window " << window;
  }
  Sampler keyed{n, {.order = Order::keyed}}, torch{n, {.order = Order::torch}},
      sequential{n, {.order = Order::sequential}};
  for (Sampler* sampler : {&keyed, &torch, &sequential})
    EXPECT_NEAR(sampler->mixing(), measured_mixing(*sampler, n), 0.02);
}

TEST(Sampler, RefusesAWindowOfNothing) {
  try {
    const Sampler sampler{10, {.order = Order::blocked, .window_chunks = 0}, {0}};
    FAIL() << "no error";
  } catch (const core::Error& error) {
    EXPECT_EQ(error.code(), core::ExitCode::usage);
  }
}

}  // namespace
}  // namespace lockstep::data

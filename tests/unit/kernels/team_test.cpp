// What kernel bodies rely on: phases, sums over threads, scratch memory, packs.
#include "runtime/kernel/team.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <vector>

#include "runtime/kernel/launch.hpp"

namespace lockstep::runtime::kernel {
namespace {

/// Reverses each block's part of an array through scratch memory, with or without a barrier between writing and
/// reading.
struct Reverse {
  static constexpr int max_threads = 64;
  float* values;
  bool has_barrier;

  template <class Team>
  LOCKSTEP_HOST_DEVICE void operator()(Team& team) const {
    auto copy = team.template scratch<float>(64);
    float* mine = values + std::size_t{team.block()} * 64;
    const auto write = [&](int thread) { copy[static_cast<std::size_t>(thread)] = mine[thread]; };
    const auto read = [&](int thread) { mine[thread] = copy[static_cast<std::size_t>(63 - thread)]; };
    if (has_barrier) {
      team.each(write);
      team.each(read);
    } else {
      team.each([&](int thread) {
        write(thread);
        read(thread);
      });
    }
  }
};

std::vector<float> reversed(bool has_barrier, ThreadOrder order) {
  std::vector<float> values(128);
  std::iota(values.begin(), values.end(), 0.0F);
  run_on_host(Reverse{values.data(), has_barrier}, {.n_blocks = 2, .n_threads = 64, .scratch_bytes = 256}, order);
  return values;
}

TEST(HostTeam, RunsPhasesOneAfterAnotherInAnyOrderOfThreads) {
  for (const auto order : {ThreadOrder::ascending, ThreadOrder::descending, ThreadOrder::shuffled}) {
    const std::vector<float> values = reversed(true, order);
    EXPECT_EQ(values[0], 63);
    EXPECT_EQ(values[63], 0);
    EXPECT_EQ(values[64], 127);
  }
}

TEST(HostTeam, ShowsAMissingBarrier) {
  const std::vector<float> right = reversed(true, ThreadOrder::ascending);
  for (const auto order : {ThreadOrder::ascending, ThreadOrder::descending, ThreadOrder::shuffled})
    EXPECT_NE(reversed(false, order), right);
}

TEST(HostTeam, ShufflesEachPhaseAnew) {
  HostTeam team{{.n_blocks = 1, .n_threads = 64}, 0, ThreadOrder::shuffled};
  std::vector<int> first;
  std::vector<int> second;
  team.each([&](int thread) { first.push_back(thread); });
  team.each([&](int thread) { second.push_back(thread); });
  EXPECT_NE(first, second);
  EXPECT_EQ(std::set<int>(first.begin(), first.end()).size(), 64U);
}

TEST(HostTeam, AddsUpInTheOrderOfAGpu) {
  const HostTeam team{{.n_blocks = 1, .n_threads = 64}, 0, ThreadOrder::ascending};
  auto values = team.per_thread(0.0F);
  // Thread 0 adds 16 first, then the sum of 8 and 24, ...: the large pair cancels before a small number is added.
  values[0] = 1e8F;
  values[16] = -1e8F;
  values[1] = 1;
  values[32] = 2;
  EXPECT_EQ(team.sum(values), 3);
  values[16] = 0;
  values[32] = -1e8F;
  EXPECT_EQ(team.sum(values), 0);  // 1 is lost within the first warp
}

TEST(HostTeam, AddsUpEachWarpInTheSameOrder) {
  const HostTeam team{{.n_blocks = 1, .n_threads = 64}, 0, ThreadOrder::ascending};
  auto values = team.per_thread(0.0F);
  values[0] = 1e8F;
  values[16] = -1e8F;
  values[1] = 1;
  values[32] = 2;
  values[63] = 3;
  const auto sums = team.reduce_warps(values, [](float a, float b) { return a + b; });
  for (int thread = 0; thread < 64; ++thread) EXPECT_EQ(sums[thread], thread < 32 ? 1 : 5);
  EXPECT_EQ(values[1], 1);
}

TEST(HostTeam, RefusesMoreScratchThanItsGridGives) {
  HostTeam team{{.n_blocks = 1, .n_threads = 32, .scratch_bytes = 64}, 0, ThreadOrder::ascending};
  static_cast<void>(team.scratch<float>(4));
  static_cast<void>(team.scratch<double>(6));
  EXPECT_ANY_THROW(static_cast<void>(team.scratch<float>(1)));
}

TEST(Pack, ReadsAndWritesRunsOfElements) {
  std::vector<bfloat16> from;
  for (int i = 0; i < 16; ++i) from.emplace_back(static_cast<float>(i));
  std::vector<bfloat16> to(16);
  store(to.data(), 0, load(from.data(), 1));
  store_once(to.data(), 1, load_once(from.data(), 0));
  EXPECT_EQ(to_float(to[0]), 8);
  EXPECT_EQ(to_float(to[15]), 7);
}

TEST(RoundTo, RoundsOnceToEven) {
  EXPECT_EQ(round_to<bfloat16>(1.00390625F).bits, 0x3f80);  // half way to the next
  EXPECT_EQ(round_to<bfloat16>(1.01171875F).bits, 0x3f82);
  EXPECT_EQ(round_to<float16>(65520.0F).bits, 0x7c00);
  EXPECT_EQ(round_to<float>(0.1F), 0.1F);
}

TEST(ForEach, VisitsEveryIndexOnce) {
  for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{255}, std::size_t{600'000}}) {
    std::vector<std::uint8_t> visits(n);
    std::uint8_t* counts = visits.data();
    Stream stream;
    for_each(stream, "count", n, {}, {region(counts, n)}, [counts](std::size_t i) { ++counts[i]; });
    EXPECT_EQ(std::accumulate(visits.begin(), visits.end(), std::size_t{0}), n);
    EXPECT_TRUE(std::ranges::all_of(visits, [](int count) { return count == 1; }));
  }
}

}  // namespace
}  // namespace lockstep::runtime::kernel

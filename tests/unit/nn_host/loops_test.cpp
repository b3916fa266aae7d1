#include "nn/host/loops.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/rng.hpp"
#include "nn/host/parallel.hpp"

namespace lockstep::nn::host {
namespace {

/// Whether this machine runs the best set there is: then it runs all. Else the plain one is compared with itself.
std::vector<const Loops*> sets() { return {&plain_loops, &loops()}; }

std::vector<float> some_floats(std::size_t n, std::uint64_t seed) {
  core::Random random{seed};
  std::vector<float> values(n);
  for (float& value : values) value = static_cast<float>(random.uniform() - 0.5);
  if (n > 20) {
    values[3] = 0.0f;
    values[17] = INFINITY;
  }
  return values;
}

TEST(Loops, AreWhatTheySayAndTheSameBitsInAllSets) {
  for (const std::size_t n : {0u, 1u, 7u, 16u, 33u, 1000u}) {
    const auto a = some_floats(n, 1), b = some_floats(n, 2), y = some_floats(n, 3);
    for (const Loops* set : sets()) {
      std::vector<float> out(n + 1, 42);
      const auto expect = [&](const auto& wanted) {
        for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(out[i], wanted(i)) << i;
        ASSERT_EQ(out[n], 42);
      };
      set->relu(a.data(), out.data(), n);
      expect([&](std::size_t i) { return a[i] > 0 ? a[i] : 0; });
      set->relu_backward(y.data(), a.data(), nullptr, out.data(), n);
      expect([&](std::size_t i) { return y[i] > 0 ? a[i] : 0; });
      set->relu_backward(y.data(), a.data(), b.data(), out.data(), n);
      expect([&](std::size_t i) { return y[i] > 0 ? a[i] + b[i] : 0; });
      set->add(a.data(), b.data(), out.data(), n);
      expect([&](std::size_t i) { return a[i] + b[i]; });
      set->add_relu(a.data(), b.data(), out.data(), n);
      expect([&](std::size_t i) { return a[i] + b[i] > 0 ? a[i] + b[i] : 0; });
      set->scale(a.data(), 0.7f, out.data(), n);
      expect([&](std::size_t i) { return a[i] * 0.7f; });
    }
  }
}

TEST(Loops, LetNaNPassThroughReLU) {
  for (const Loops* set : sets()) {
    const std::vector<float> x(40, std::nanf("")), one(40, 1);
    std::vector<float> out(40);
    set->relu(x.data(), out.data(), 40);
    EXPECT_TRUE(std::isnan(out[0]) && std::isnan(out[39]));
    set->add_relu(x.data(), one.data(), out.data(), 40);
    EXPECT_TRUE(std::isnan(out[0]) && std::isnan(out[39]));
  }
}

TEST(Loops, DrawMasksFromPhilox) {
  const MaskKey key{{0x1234, 0xabcd'ef01}, 6, 0x0fed'cba9'8765'4321, 0x6000'0000};
  for (const Loops* set : sets()) {
    for (const std::size_t n : {1u, 4u, 63u, 200u}) {
      std::vector<std::uint8_t> mask((n + 3) / 4 * 4 + 1, 9);
      set->draw_mask(key, mask.data(), n);
      for (std::size_t i = 0; i + 1 < mask.size(); ++i) {
        const auto block =
            core::philox(key.key, {static_cast<std::uint32_t>(i / 4), key.node, 0x8765'4321, 0x0fed'cba9});
        ASSERT_EQ(mask[i], block[i % 4] >= key.threshold ? 1 : 0) << i;
      }
      EXPECT_EQ(mask.back(), 9);
    }
  }
}

TEST(Loops, DropAsOftenAsTheThresholdSays) {
  std::vector<std::uint8_t> mask(100'000);
  loops().draw_mask({{1, 2}, 3, 4, 0x4000'0000}, mask.data(), mask.size());
  const auto n_kept = std::count(mask.begin(), mask.end(), 1);
  EXPECT_NEAR(static_cast<double>(n_kept), 75'000, 700);  // five standard deviations
  const auto x = some_floats(mask.size(), 7);
  std::vector<float> out(mask.size());
  loops().mask(x.data(), mask.data(), 2, out.data(), mask.size());
  for (std::size_t i = 0; i < mask.size(); ++i) ASSERT_EQ(out[i], mask[i] == 1 ? 2 * x[i] : 0);
}

TEST(Loops, SumRowsInOrder) {
  const auto x = some_floats(19 * 37, 4);
  for (const Loops* set : sets()) {
    std::vector<float> out(37);
    set->sum_rows(x.data(), 19, 37, out.data());
    for (std::size_t c = 0; c < 37; ++c) {
      float sum = 0;
      for (std::size_t r = 0; r < 19; ++r) sum += x[r * 37 + c];
      ASSERT_EQ(out[c], sum);
    }
  }
}

TEST(Loops, TransposeBlocks) {
  const auto from = some_floats(3 * 256, 4);
  for (const Loops* set : sets()) {
    std::vector<float> to(from.size());
    set->transpose_blocks(from.data(), to.data(), 3);
    for (std::size_t i = 0; i < to.size(); ++i) ASSERT_EQ(to[i], from[i / 256 * 256 + i % 16 * 16 + i % 256 / 16]) << i;
  }
}

TEST(ForParts, TakesEveryElementOnce) {
  for (const std::size_t n : {0u, 1u, 2u, 3u, 5u, 64u, 1000u, 99'999u}) {
    std::vector<std::atomic<int>> n_times(n);
    for_parts(n, 1, [&](std::size_t begin, std::size_t end) {
      ASSERT_LT(begin, end);
      for (std::size_t i = begin; i < end; ++i) ++n_times[i];
    });
    for (const auto& times : n_times) ASSERT_EQ(times, 1);
  }
}

TEST(ForParts, LeavesShortLoopsWhole) {
  int n_calls = 0;
  for_parts(1000, 501, [&](std::size_t begin, std::size_t end) {
    EXPECT_EQ(end - begin, 1000u);
    ++n_calls;
  });
  EXPECT_EQ(n_calls, 1);
}

}  // namespace
}  // namespace lockstep::nn::host

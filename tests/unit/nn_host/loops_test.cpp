#include "nn/host/loops.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/rng.hpp"
#include "nn/host/parallel.hpp"

namespace lockstep::nn::host {
namespace {

std::span<const Loops* const> sets() { return core::available_loops<Loops>(); }

template <class T>
std::vector<T> some(std::size_t n, std::uint64_t seed) {
  core::Random random{seed};
  std::vector<T> values(n);
  for (T& value : values) value = T{static_cast<float>(random.uniform() - 0.5)};
  if (n > 20) {
    values[3] = T{0.0f};
    values[17] = T{INFINITY};
  }
  return values;
}

std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }
std::uint32_t bits_of(core::bfloat16 x) { return x.bits; }

/// Whether `set` has the functions of `ElementLoops<T>`, each rounding elements once.
template <class T>
void expect_element_loops(const ElementLoops<T>& set, std::size_t n) {
  const auto a = some<T>(n, 1), b = some<T>(n, 2), y = some<T>(n, 3);
  std::vector<std::uint8_t> kept(n);
  for (std::size_t i = 0; i < n; ++i) kept[i] = i % 3 == 0;
  std::vector<T> out(n + 1, T{42.0f});
  const auto f = [](T x) { return static_cast<float>(x); };
  const auto expect = [&](const auto& wanted) {
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(bits_of(out[i]), bits_of(T{wanted(i)})) << i;
    ASSERT_EQ(f(out[n]), 42);
  };
  set.relu(a.data(), out.data(), n);
  expect([&](std::size_t i) { return f(a[i]) > 0 ? f(a[i]) : 0; });
  set.relu_backward(y.data(), a.data(), nullptr, out.data(), n);
  expect([&](std::size_t i) { return f(y[i]) > 0 ? f(a[i]) : 0; });
  set.relu_backward(y.data(), a.data(), b.data(), out.data(), n);
  expect([&](std::size_t i) { return f(y[i]) > 0 ? f(a[i]) + f(b[i]) : 0; });
  set.add(a.data(), b.data(), out.data(), n);
  expect([&](std::size_t i) { return f(a[i]) + f(b[i]); });
  set.add_relu(a.data(), b.data(), out.data(), n);
  expect([&](std::size_t i) { return f(a[i]) + f(b[i]) > 0 ? f(a[i]) + f(b[i]) : 0; });
  set.mask(a.data(), kept.data(), 0.7f, out.data(), n);
  expect([&](std::size_t i) { return kept[i] != 0 ? f(a[i]) * 0.7f : 0; });
  const auto floats = some<float>(n, 4);
  set.from_floats(floats.data(), out.data(), n);
  expect([&](std::size_t i) { return floats[i]; });
  std::vector<float> back(n), sum = floats;
  set.to_floats(a.data(), back.data(), n);
  set.add_to(sum.data(), a.data(), n);
  for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(back[i], f(a[i]));
  for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(sum[i], floats[i] + f(a[i]));
}

TEST(Loops, AreWhatTheySayAndTheSameBitsInAllSets) {
  for (const std::size_t n : {0u, 1u, 7u, 16u, 33u, 1000u}) {
    for (const Loops* set : sets()) {
      expect_element_loops(set->floats, n);
      expect_element_loops(set->bfloats, n);
      const auto x = some<float>(n, 1);
      std::vector<float> out(n);
      set->scale(x.data(), 0.7f, out.data(), n);
      for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(out[i], x[i] * 0.7f);
    }
  }
}

template <class T>
void expect_nan_passes(const ElementLoops<T>& set) {
  const std::vector<T> x(40, T{std::nanf("")}), one(40, T{1.0f});
  std::vector<T> out(40);
  const auto is_nan = [&] { return std::isnan(static_cast<float>(out[0])) && std::isnan(static_cast<float>(out[39])); };
  set.relu(x.data(), out.data(), 40);
  EXPECT_TRUE(is_nan());
  set.add_relu(x.data(), one.data(), out.data(), 40);
  EXPECT_TRUE(is_nan());
}

TEST(Loops, LetNaNPassThroughReLU) {
  for (const Loops* set : sets()) {
    expect_nan_passes(set->floats);
    expect_nan_passes(set->bfloats);
  }
}

// Rounding must not carry into the exponent of a NaN, and must go to even in the middle between two bfloat16.
TEST(Loops, RoundEveryKindOfNumber) {
  std::vector<float> x;
  for (const std::uint32_t upper :
       {0x0000u, 0x0001u, 0x3f80u, 0x3f81u, 0x7f7fu, 0x7f80u, 0x7f81u, 0x7fffu, 0xbf80u, 0xff80u})
    for (const std::uint32_t lower : {0x0000u, 0x0001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      x.push_back(std::bit_cast<float>(upper << 16 | lower));
  x.resize(64, 1.0f);
  for (const Loops* set : sets()) {
    std::vector<core::bfloat16> out(64), pairs(64);
    set->bfloats.from_floats(x.data(), out.data(), 64);
    set->pair_rows(x.data(), pairs.data(), 4);
    for (std::size_t i = 0; i < 64; ++i) ASSERT_EQ(out[i].bits, core::bfloat16{x[i]}.bits) << i;
    for (std::size_t i = 0; i < 64; ++i)
      ASSERT_EQ(pairs[i / 32 * 32 + i % 16 * 2 + i / 16 % 2].bits, core::bfloat16{x[i]}.bits) << i;
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
  const auto x = some<float>(mask.size(), 7);
  std::vector<float> out(mask.size());
  loops().floats.mask(x.data(), mask.data(), 2, out.data(), mask.size());
  for (std::size_t i = 0; i < mask.size(); ++i) ASSERT_EQ(out[i], mask[i] == 1 ? 2 * x[i] : 0);
}

TEST(Loops, SumRowsInDouble) {
  const auto x = some<float>(19 * 137, 4);
  for (const Loops* set : sets()) {
    std::vector<float> out(137);
    set->floats.sum_rows(x.data(), 19, 137, out.data());
    for (std::size_t c = 0; c < 137; ++c) {
      double sum = 0;
      for (std::size_t r = 0; r < 19; ++r) sum += x[r * 137 + c];
      ASSERT_EQ(out[c], static_cast<float>(sum));
    }
  }
}

TEST(Loops, TransposeBlocks) {
  const auto from = some<float>(3 * 256, 4);
  for (const Loops* set : sets()) {
    std::vector<float> to(from.size());
    set->transpose_blocks(from.data(), to.data(), 3);
    for (std::size_t i = 0; i < to.size(); ++i) ASSERT_EQ(to[i], from[i / 256 * 256 + i % 16 * 16 + i % 256 / 16]) << i;
  }
}

TEST(Loops, PutTwoRowsOrColumnsSideBySide) {
  const auto from = some<float>(3 * 256, 4);
  for (const Loops* set : sets()) {
    std::vector<core::bfloat16> columns(from.size()), rows(from.size() + 16);
    set->transpose_pairs(from.data(), columns.data(), 3);
    for (std::size_t i = 0; i < from.size(); ++i) {
      const std::size_t r = i % 256 / 16, c = i % 16;
      ASSERT_EQ(columns[i / 256 * 256 + c / 2 * 32 + r * 2 + c % 2].bits, core::bfloat16{from[i]}.bits) << i;
    }
    for (const std::size_t n_rows : {1u, 2u, 7u, 48u}) {
      set->pair_rows(from.data(), rows.data(), n_rows);
      for (std::size_t r = 0; r < (n_rows + 1) / 2 * 2; ++r)
        for (std::size_t c = 0; c < 16; ++c)
          ASSERT_EQ(rows[r / 2 * 32 + c * 2 + r % 2].bits, r < n_rows ? core::bfloat16{from[r * 16 + c]}.bits : 0);
    }
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

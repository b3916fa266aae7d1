#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "data/image/image.hpp"
#include "data/image/resize_loops.hpp"

namespace lockstep::data {
namespace {

struct Case {
  std::uint64_t height, width, channels;
  Box box;
  std::uint64_t out_height, out_width;
};

std::vector<std::byte> noise(std::size_t n, std::uint64_t seed) {
  core::Random random{seed};
  std::vector<std::byte> pixels(n);
  for (std::byte& pixel : pixels) pixel = static_cast<std::byte>(random.next());
  return pixels;
}

// Weights of one result along one side, from the definition: a triangle around its centre, over the whole input.
std::vector<double> triangle(std::uint64_t n_in, double begin, double length, std::uint64_t n_out,
                             std::uint64_t place) {
  const double scale = length / static_cast<double>(n_out), radius = std::max(scale, 1.0);
  const double center = begin + scale * (static_cast<double>(place) + 0.5);
  std::vector<double> weights(n_in);
  double sum = 0;
  for (std::uint64_t k = 0; k < n_in; ++k) {
    weights[k] = std::max(0.0, 1 - std::abs(static_cast<double>(k) + 0.5 - center) / radius);
    sum += weights[k];
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

double exact_level(const std::vector<std::byte>& pixels, const Case& c, std::uint64_t y, std::uint64_t x,
                   std::uint64_t channel) {
  const std::vector<double> down = triangle(c.height, c.box.top, c.box.height, c.out_height, y);
  const std::vector<double> across = triangle(c.width, c.box.left, c.box.width, c.out_width, x);
  double level = 0;
  for (std::uint64_t v = 0; v < c.height; ++v) {
    if (down[v] == 0) continue;
    for (std::uint64_t u = 0; u < c.width; ++u) {
      level += down[v] * across[u] * std::to_integer<int>(pixels[(v * c.width + u) * c.channels + channel]);
    }
  }
  return level;
}

void expect_as_exact(const Case& c) {
  const std::vector<std::byte> pixels = noise(c.height * c.width * c.channels, c.height * 1000 + c.width);
  std::vector<std::byte> out(c.out_height * c.out_width * c.channels);
  resize(pixels, c.height, c.width, c.channels, c.box, c.out_height, c.out_width, out);
  double greatest = 0;
  for (std::uint64_t i = 0; i < out.size(); ++i) {
    const std::uint64_t channel = i % c.channels, x = i / c.channels % c.out_width, y = i / c.channels / c.out_width;
    greatest = std::max(greatest, std::abs(std::to_integer<int>(out[i]) - exact_level(pixels, c, y, x, channel)));
  }
  EXPECT_LE(greatest, 1.001) << c.height << " x " << c.width << " to " << c.out_height << " x " << c.out_width;
}

// Among white pixels, whose sums reach the largest level; behind each result, bytes that must stay.
TEST(Resize, AllInstructionSetsGiveTheSameBytes) {
  constexpr std::size_t n_in = 47, n_out = 29, most_taps = 6;
  core::Random random{3};
  std::vector<TapRun> runs(n_out);
  std::vector<std::int32_t> weights(n_out * most_taps);
  for (std::size_t i = 0; i < n_out; ++i) {
    const std::size_t n = 1 + i % most_taps;
    runs[i] = {std::min(i * n_in / n_out, n_in - n), n};
    for (std::size_t k = 0; k < n; ++k)
      weights[i * most_taps + k] = (1 << tap_weight_bits) / static_cast<std::int32_t>(n) - static_cast<std::int32_t>(k);
  }
  const TapTable across{runs.data(), weights.data(), most_taps, most_taps, n_in, n_out};
  std::vector<std::byte> noisy = noise(n_in * 3 * most_taps, 5);
  std::fill_n(noisy.begin(), 60, std::byte{255});
  const auto* in = reinterpret_cast<const std::uint8_t*>(noisy.data());
  const auto results = [&](const ResizeLoops& loops) {
    constexpr std::uint8_t untouched = 0xa5;
    std::vector<std::uint8_t> gray(n_out + 8, untouched), colour(n_out * 3 + 8, untouched), rows;
    loops.gray_row(in, across, gray.data());
    loops.colour_row(in, across, colour.data());
    rows.assign(n_in * 3 + 8, untouched);
    loops.column_run(in, n_in * 3, most_taps, weights.data() + (most_taps - 1) * most_taps, rows.data());
    gray.insert(gray.end(), colour.begin(), colour.end());
    gray.insert(gray.end(), rows.begin(), rows.end());
    return gray;
  };
  const std::vector<std::uint8_t> expected = results(*core::available_loops<ResizeLoops>().front());
  for (const ResizeLoops* loops : core::available_loops<ResizeLoops>()) EXPECT_EQ(results(*loops), expected);
}

TEST(Resize, WholeImagesAreWithinOneLevelOfTheExactAnswer) {
  constexpr std::array<std::pair<std::uint64_t, std::uint64_t>, 7> sizes{
      {{1, 1}, {1, 9}, {8, 8}, {7, 13}, {20, 3}, {31, 32}, {40, 24}}};
  for (const auto& [height, width] : sizes) {
    for (const auto& [out_height, out_width] : sizes) {
      for (const std::uint64_t channels : {1, 3}) {
        const Box whole{0, 0, static_cast<double>(height), static_cast<double>(width)};
        expect_as_exact({height, width, channels, whole, out_height, out_width});
      }
    }
  }
}

TEST(Resize, BoxesAreWithinOneLevelOfTheExactAnswer) {
  for (const Box& box : {Box{0, 0, 10, 10}, Box{3, 5, 20, 11}, Box{0.5, 1.25, 3.3, 28.75}, Box{29, 29, 1, 1},
                         Box{7.9, 0, 0.2, 30}, Box{0, 0, 30, 15.5}}) {
    expect_as_exact({30, 30, 3, box, 12, 12});
    expect_as_exact({30, 30, 1, box, 1, 40});
    expect_as_exact({30, 30, 3, box, 30, 30});
  }
}

// More than one piece of a row, and far more taps than an enlargement has.
TEST(Resize, LongRowsAndStrongReductionsAreExactToo) {
  expect_as_exact({6, 700, 3, {0, 0, 6, 700}, 3, 650});
  expect_as_exact({300, 3, 3, {0, 0, 300, 3}, 1, 1});
  expect_as_exact({3, 900, 1, {0, 0, 3, 900}, 1, 2});
}

TEST(Resize, SameSizeChangesNothing) {
  const std::vector<std::byte> pixels = noise(17 * 11 * 3, 1);
  std::vector<std::byte> out(pixels.size());
  resize(pixels, 17, 11, 3, {0, 0, 17, 11}, 17, 11, out);
  EXPECT_EQ(out, pixels);
}

TEST(Resize, OneColourStaysThatColour) {
  for (const int level : {0, 1, 127, 254, 255}) {
    const std::vector<std::byte> pixels(50 * 70, static_cast<std::byte>(level));
    std::vector<std::byte> out(23 * 91);
    resize(pixels, 50, 70, 1, {1.5, 2.25, 40, 60.5}, 23, 91, out);
    EXPECT_TRUE(std::all_of(out.begin(), out.end(), [&](std::byte b) { return b == static_cast<std::byte>(level); }));
  }
}

// A crop of the whole result is the result of the box it comes from, so that only what is kept need be computed.
TEST(Resize, BoxOfAResultIsThatPartOfTheResult) {
  const std::vector<std::byte> pixels = noise(50 * 80 * 3, 2);
  std::vector<std::byte> whole(20 * 32 * 3), part(10 * 16 * 3);
  resize(pixels, 50, 80, 3, {0, 0, 50, 80}, 20, 32, whole);
  resize(pixels, 50, 80, 3, {5 * 2.5, 8 * 2.5, 25, 40}, 10, 16, part);
  for (std::size_t y = 0; y < 10; ++y) {
    for (std::size_t k = 0; k < 48; ++k) ASSERT_EQ(part[y * 48 + k], whole[(y + 5) * 96 + 24 + k]);
  }
}

TEST(Resize, ABoxBeyondTheImageIsADefect) {
  const std::vector<std::byte> pixels(9);
  std::vector<std::byte> out(1);
  EXPECT_THROW(resize(pixels, 3, 3, 1, {0, 0, 3, 4}, 1, 1, out), core::Error);
  EXPECT_THROW(resize(pixels, 3, 3, 1, {-1, 0, 3, 3}, 1, 1, out), core::Error);
}

}  // namespace
}  // namespace lockstep::data

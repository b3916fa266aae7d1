#include "data/augment/lookup.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "core/rng.hpp"

namespace lockstep::data {
namespace {

std::vector<Levels> some_levels(std::size_t n_channels) {
  std::vector<Levels> channels(n_channels);
  for (std::size_t c = 0; c < n_channels; ++c)
    for (std::size_t level = 0; level < 256; ++level)
      channels[c][level] = (static_cast<float>(level) / 255 - 0.4f) / (0.2f + 0.1f * static_cast<float>(c));
  return channels;
}

struct Sample {
  Sample(std::size_t height, std::size_t width, std::size_t n_channels, std::uint64_t seed = 1)
      : pixels(height * width * n_channels), image{pixels, height, width, width * n_channels} {
    core::Random random{seed};
    for (std::byte& pixel : pixels) pixel = static_cast<std::byte>(random.below(256));
  }

  std::vector<std::byte> pixels;
  Pixels image;
};

/// The value at (channel, row, column) of the window, one pixel at a time.
float expected(const Sample& sample, const Window& window, std::span<const Levels> channels, std::size_t c,
               std::size_t y, std::size_t x) {
  const auto row = window.top + static_cast<std::ptrdiff_t>(y);
  const auto column = window.left + static_cast<std::ptrdiff_t>(window.is_flipped ? window.width - 1 - x : x);
  const bool is_inside = row >= 0 && column >= 0 && row < static_cast<std::ptrdiff_t>(sample.image.height) &&
                         column < static_cast<std::ptrdiff_t>(sample.image.width);
  if (!is_inside) return channels[c][0];
  const std::size_t pixel = static_cast<std::size_t>(row) * sample.image.width + static_cast<std::size_t>(column);
  return channels[c][std::to_integer<std::size_t>(sample.pixels[pixel * channels.size() + c])];
}

template <class T>
void check(const Sample& sample, const Window& window, std::size_t n_channels, core::DType dtype, ChannelOrder layout) {
  const auto channels = some_levels(n_channels);
  const Lookup lookup{channels, dtype, layout};
  std::vector<T> out(window.height * window.width * n_channels);
  lookup.apply(sample.image, window, std::as_writable_bytes(std::span{out}));
  for (std::size_t c = 0; c < n_channels; ++c)
    for (std::size_t y = 0; y < window.height; ++y)
      for (std::size_t x = 0; x < window.width; ++x) {
        const std::size_t place = layout == ChannelOrder::nchw ? (c * window.height + y) * window.width + x
                                                               : (y * window.width + x) * n_channels + c;
        const T value{expected(sample, window, channels, c, y, x)};
        ASSERT_EQ(std::memcmp(&out[place], &value, sizeof(T)), 0) << "channel " << c << ", " << y << ", " << x;
      }
}

const std::vector<Window> windows{
    {0, 0, 6, 9, false},     {0, 0, 6, 9, true},     {1, 2, 3, 4, false},   {1, 2, 3, 4, true},
    {-2, -3, 10, 15, false}, {-2, -3, 10, 15, true}, {4, 5, 4, 6, true},    {-2, 7, 4, 5, false},
    {-9, 0, 3, 3, false},    {0, 20, 3, 3, true},    {7, -40, 2, 5, false}, {-1, -1, 20, 1, true},
};

TEST(Lookup, EqualsAPixelAtATime) {
  for (const std::size_t n_channels : {1u, 2u, 3u, 4u}) {
    const Sample sample{6, 9, n_channels};
    for (const Window& window : windows)
      for (const ChannelOrder layout : {ChannelOrder::nchw, ChannelOrder::nhwc}) {
        check<float>(sample, window, n_channels, core::DType::float32, layout);
        check<core::bfloat16>(sample, window, n_channels, core::DType::bfloat16, layout);
      }
  }
}

TEST(Lookup, WideRowsEqualAPixelAtATime) {
  for (const std::size_t n_channels : {1u, 2u, 3u, 4u, 5u})
    for (const std::size_t width : {63u, 64u, 65u, 200u}) {
      const Sample sample{3, width, n_channels};
      for (const bool is_flipped : {false, true})
        for (const std::ptrdiff_t left : {0, 1, -2}) {
          const Window window{0, left, 3, width, is_flipped};
          check<float>(sample, window, n_channels, core::DType::float32, ChannelOrder::nchw);
          check<core::bfloat16>(sample, window, n_channels, core::DType::bfloat16, ChannelOrder::nchw);
        }
    }
}

TEST(Lookup, ReadsPartsOfLargerImages) {
  const Sample whole{6, 9, 3};
  const std::span<const std::byte> pixels{whole.pixels};
  const Pixels part{pixels.subspan((2 * 9 + 4) * 3), 3, 5, whole.image.row_bytes};
  const Lookup lookup{some_levels(3), core::DType::float32, ChannelOrder::nchw};
  std::vector<float> of_part(lookup.n_bytes(3, 5) / sizeof(float)), of_whole(of_part.size());
  lookup.apply(part, {0, 0, 3, 5, true}, std::as_writable_bytes(std::span{of_part}));
  lookup.apply(whole.image, {2, 4, 3, 5, true}, std::as_writable_bytes(std::span{of_whole}));
  EXPECT_EQ(of_part, of_whole);
}

TEST(Lookup, RefusesOtherElementTypesAndResultsOfAnotherSize) {
  EXPECT_THROW((Lookup{some_levels(1), core::DType::float64, ChannelOrder::nchw}), core::Error);
  const Sample sample{2, 2, 1};
  const Lookup lookup{some_levels(1), core::DType::float32, ChannelOrder::nchw};
  std::vector<std::byte> out(15);
  EXPECT_THROW(lookup.apply(sample.image, {0, 0, 2, 2, false}, out), core::Error);
}

TEST(Lookup, IsTheSameOnManyThreadsAtATime) {
  constexpr std::size_t n = 13;
  std::vector<Sample> samples;
  samples.reserve(n);
  std::vector<Window> parts;
  for (std::size_t i = 0; i < n; ++i) {
    samples.emplace_back(8, 8, 3, i + 1);
    parts.push_back({static_cast<std::ptrdiff_t>(i % 3) - 1, 1, 7, 7, i % 2 == 1});
  }
  const Lookup lookup{some_levels(3), core::DType::float32, ChannelOrder::nchw};
  const std::size_t bytes = lookup.n_bytes(7, 7);
  std::vector<std::byte> at_once(n * bytes), singles(n * bytes);
  const auto convert = [&](std::size_t i, std::span<std::byte> out) {
    lookup.apply(samples[i].image, parts[i], out.subspan(i * bytes, bytes));
  };
  for (std::size_t i = 0; i < n; ++i) convert(i, singles);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < n; ++i) threads.emplace_back([&, i] { convert(i, at_once); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(at_once, singles);
}

}  // namespace
}  // namespace lockstep::data

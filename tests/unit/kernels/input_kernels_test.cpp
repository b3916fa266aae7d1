// The first layers of networks: images converted by tables, and rows of tables with their gradients.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "data/augment/augment.hpp"
#include "nn/cuda/kernels/samples.hpp"
#include "nn/ops/embedding/kernels.hpp"
#include "unit/kernels/nn_cuda.hpp"

namespace lockstep::nn::cuda {
namespace {

template <class T>
class InputKernels : public ::testing::Test {};
TYPED_TEST_SUITE(InputKernels, ElementTypes);

TYPED_TEST(InputKernels, ImagesAreCroppedFlippedAndLookedUp) {
  using T = TypeParam;
  std::mt19937 random{1};
  for (const int n_channels : {1, 3, 4}) {
    const int height = 9, width = 7, out_height = 6, out_width = 8;
    // Inside, beyond each edge, and completely outside.
    const Vector<ImageView> views{{0, 0, 0}, {-2, -3, 1}, {5, 2, 0}, {1, 4, 1}, {20, 0, 0}};
    const auto channels = static_cast<std::size_t>(n_channels);
    Vector<std::uint8_t> pixels(views.size() * static_cast<std::size_t>(height * width) * channels);
    for (auto& pixel : pixels) pixel = static_cast<std::uint8_t>(random());
    const auto table = random_values<float>(256 * channels, 2);
    Vector<T> out(views.size() * static_cast<std::size_t>(out_height * out_width) * 8, round_to<T>(9));
    expect_same_in_all_orders([&](Runner run) {
      run(LookUpPixels<T>{views.size(), height, width, n_channels, pixels.data(), views.data(), table.data(),
                          out_height, out_width, out.data()});
      return bytes_of(out);
    });
    std::size_t i = 0;
    for (std::size_t image = 0; image < views.size(); ++image) {
      for (int y = 0; y < out_height; ++y) {
        for (int x = 0; x < out_width; ++x) {
          const int row = views[image].top + y;
          const int column = views[image].left + (views[image].is_flipped != 0 ? out_width - 1 - x : x);
          for (std::size_t c = 0; c < 8; ++c, ++i) {
            std::size_t level = 0;
            if (row >= 0 && row < height && column >= 0 && column < width)
              level = pixels[(image * static_cast<std::size_t>(height * width) +
                              static_cast<std::size_t>(row * width + column)) *
                                 channels +
                             c % channels];
            ASSERT_EQ(number(out[i]), c < channels ? number(round_to<T>(table[c * 256 + level])) : 0);
          }
        }
      }
    }
  }
}

/// Converts samples of uint8 by `augment`, and brings them to a network's layout: from the floats that a loader makes,
/// and from the pixels that it leaves to the kernel. Returns the number of bytes that differ.
template <class T>
std::string difference_of_paths(const data::Augment& augment, const Vector<std::uint8_t>& samples, std::uint64_t height,
                                std::uint64_t width, std::size_t n_samples) {
  const std::vector<std::uint64_t>& shape = augment.output().shape;  // channels, rows, columns
  const std::size_t channels = shape[0], n_positions = shape[1] * shape[2], stored = samples.size() / n_samples;
  const data::ArraySpec& kept = *augment.pixels();
  std::vector<std::byte> scratch(augment.scratch_bytes());
  Vector<float> floats(n_samples * channels * n_positions);
  Vector<std::uint8_t> pixels(n_samples * kept.bytes());
  Vector<ImageView> views;
  for (std::size_t i = 0; i < n_samples; ++i) {
    const auto x = std::as_bytes(std::span{samples}).subspan(i * stored, stored);
    const auto floats_of_it =
        std::as_writable_bytes(std::span{floats}).subspan(i * augment.output().bytes(), augment.output().bytes());
    augment.apply(x, height, width, 3, i, floats_of_it, scratch);
    const auto pixels_of_it = std::as_writable_bytes(std::span{pixels}).subspan(i * kept.bytes(), kept.bytes());
    views.push_back(augment.take(x, height, width, 3, i, pixels_of_it, scratch));
  }
  const Vector<float> levels(augment.levels().begin(), augment.levels().end());
  Vector<T> of_floats(n_samples * n_positions * 8, round_to<T>(9)), of_pixels = of_floats;
  Runner{ThreadOrder::ascending}(TakeSamples<T>{n_samples, n_positions, channels, 8, floats.data(), of_floats.data()});
  Runner{ThreadOrder::ascending}(LookUpPixels<T>{n_samples, static_cast<int>(kept.shape[0]),
                                                 static_cast<int>(kept.shape[1]), static_cast<int>(channels),
                                                 pixels.data(), views.data(), levels.data(), static_cast<int>(shape[1]),
                                                 static_cast<int>(shape[2]), of_pixels.data()});
  return difference(bytes_of(of_pixels), bytes_of(of_floats));
}

TYPED_TEST(InputKernels, PixelsBecomeTheBitsThatALoaderMakes) {
  constexpr std::size_t n_samples = 40;
  constexpr std::uint64_t height = 9, width = 7;
  std::mt19937 random{1};
  for (const std::uint64_t n_channels : {1, 3, 8}) {
    Vector<std::uint8_t> samples(n_samples * height * width * n_channels);
    for (auto& pixel : samples) pixel = static_cast<std::uint8_t>(random());
    for (const std::string chain :
         {"flip:0.5", "normalize:0.4:0.3", "crop:9x7:2,flip", "crop:12x10:4", "crop:5,flip", "flip,crop:6:1,flip:0.3",
          "centercrop:4", "centercrop:13,flip,normalize:0.13:0.31", "crop:4,crop:8:3", "rrcrop:6x5,flip",
          "resize:6,crop:5,flip", "crop:5,resize:12x11,centercrop:14"}) {
      const bool is_resized = chain.find("rrcrop") != chain.npos || chain.find("resize") != chain.npos;
      if (is_resized && n_channels > 3) continue;
      SCOPED_TRACE(fmt::format("{} channels, {}", n_channels, chain));
      data::SetSpec spec;
      spec.x.shape = {height, width, n_channels};
      const data::Augment augment{spec, {.steps = data::parse_augment(chain, "chain")}};
      EXPECT_LE(augment.pixels()->bytes() * sizeof(float), augment.output().bytes());
      EXPECT_EQ(difference_of_paths<TypeParam>(augment, samples, 0, 0, n_samples), "");
      if (n_channels != 3 || chain.find("resize") == chain.npos) continue;
      spec.encoding = "image";
      spec.x.shape.clear();
      const data::Augment encoded{spec, {.steps = data::parse_augment("resize:6x7," + chain, "chain")}};
      EXPECT_EQ(difference_of_paths<TypeParam>(encoded, samples, height, width, n_samples), "");
    }
  }
}

TYPED_TEST(InputKernels, RowsAreGatheredByIds) {
  using T = TypeParam;
  const auto table = random_values<T>(10 * 16, 1);
  const Vector<std::int64_t> ids{0, 3, 0, 9, 0, 3, 0, 10, 0, -1};  // for the second column
  Vector<T> out(5 * 16, round_to<T>(9));
  test::Reachable<std::uint32_t> has_bad_id;
  for (const std::size_t n : {std::size_t{3}, std::size_t{5}}) {
    expect_same_in_all_orders([&](Runner run) {
      run(GatherRows<T>{n, 16, 10, table.data(), ids.data(), 2, 1, out.data(), has_bad_id.get()});
      return bytes_of(out);
    });
    EXPECT_EQ(*has_bad_id, n == 3 ? 0U : 1U);
  }
  for (std::size_t i = 0; i < 5 * 16; ++i) {
    const auto id = static_cast<std::size_t>(ids[i / 16 * 2 + 1]);
    ASSERT_EQ(number(out[i]), id < 10 ? number(table[id * 16 + i % 16]) : 0);
  }
}

TYPED_TEST(InputKernels, GradientsOfRowsAreAddedInTheOrderOfSamples) {
  using T = TypeParam;
  constexpr std::size_t n = 500, width = 24, n_rows = 20;
  std::mt19937 random{1};
  Vector<std::uint64_t> ids(n);
  for (auto& id : ids) id = random() % 3 == 0 ? 7 : random() % (n_rows - 1);  // the last row has none
  ids[13] = n_rows;                                                           // out of range
  Vector<std::uint32_t> samples(n);
  std::iota(samples.begin(), samples.end(), 0U);
  std::ranges::stable_sort(samples, {}, [&](std::uint32_t sample) { return ids[sample]; });
  Vector<std::uint64_t> sorted;
  for (const std::uint32_t sample : samples) sorted.push_back(ids[sample]);
  const auto gradient = random_values<T>(n * width, 2);
  Vector<float> table(n_rows * width), right(n_rows * width, 3);
  expect_same_in_all_orders([&](Runner run) {
    table.assign(n_rows * width, 3);
    run(AddSegments<T>{n, width, n_rows, sorted.data(), samples.data(), gradient.data(), table.data()});
    return bytes_of(table);
  });
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t c = 0; ids[i] < n_rows && c < width; ++c)
      right[ids[i] * width + c] += to_float(gradient[i * width + c]);
  EXPECT_EQ(table, right);  // the bits of the host's loop over samples
}

}  // namespace
}  // namespace lockstep::nn::cuda

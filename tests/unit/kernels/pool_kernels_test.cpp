// Pooling against loops over windows in double.
#include <gtest/gtest.h>

#include <cmath>

#include "nn/ops/global_avg_pool/kernels.hpp"
#include "nn/ops/max_pool/kernels.hpp"
#include "unit/kernels/nn_cuda.hpp"

namespace lockstep::nn::cuda {
namespace {

PoolSizes pool_sizes(std::size_t n, int height, int width, std::size_t channels, int kernel, int stride, int padding) {
  const auto out = [&](int size) { return (size + 2 * padding - kernel) / stride + 1; };
  return {n, height, width, channels, kernel, stride, padding, out(height), out(width)};
}
// ResNet's, which halves images of an even size; one without overlap that is cut off at the far edges; one whose
// windows leave gaps; the largest.
const std::vector<PoolSizes> all_sizes{pool_sizes(2, 14, 11, 16, 3, 2, 1), pool_sizes(2, 14, 12, 16, 3, 2, 1),
                                       pool_sizes(1, 2, 2, 8, 3, 2, 1),    pool_sizes(3, 7, 5, 8, 2, 2, 0),
                                       pool_sizes(1, 9, 9, 24, 2, 3, 0),   pool_sizes(1, 13, 12, 8, 11, 1, 5)};

template <class T>
class PoolKernels : public ::testing::Test {};
TYPED_TEST_SUITE(PoolKernels, ElementTypes);

TYPED_TEST(PoolKernels, MaximaAndTheirGradients) {
  for (const PoolSizes& sizes : all_sizes) {
    const auto x = random_values<TypeParam>(sizes.n_in() * 8, 1);
    const auto gradient = random_values<TypeParam>(sizes.n_out() * 8, 2);
    Vector<TypeParam> out(sizes.n_out() * 8), back(sizes.n_in() * 8);
    Vector<std::int8_t> places(out.size());
    expect_same_in_all_orders([&](Runner run) {
      run(PoolMaxima<TypeParam>{sizes, x.data(), out.data(), places.data()});
      run(PoolMaximaBackward<TypeParam>{sizes, gradient.data(), places.data(), back.data()});
      return bytes_of(out, places, back);
    });
    Vector<double> right_back(back.size()), magnitude(back.size());
    std::size_t i = 0;
    for (std::size_t image = 0; image < sizes.n_images; ++image) {
      for (int oy = 0; oy < sizes.out_height; ++oy) {
        for (int ox = 0; ox < sizes.out_width; ++ox) {
          for (std::size_t c = 0; c < sizes.n_channels; ++c, ++i) {
            double largest = -1e9;
            std::size_t from = 0;
            for (int y = oy * sizes.stride - sizes.padding; y < oy * sizes.stride - sizes.padding + sizes.kernel; ++y) {
              for (int k = 0; k < sizes.kernel; ++k) {
                const int column = ox * sizes.stride - sizes.padding + k;
                if (y < 0 || y >= sizes.height || column < 0 || column >= sizes.width) continue;
                const auto row = image * static_cast<std::size_t>(sizes.height) + static_cast<std::size_t>(y);
                const std::size_t at =
                    (row * static_cast<std::size_t>(sizes.width) + static_cast<std::size_t>(column)) *
                        sizes.n_channels +
                    c;
                if (number(x[at]) <= largest) continue;
                largest = number(x[at]);
                from = at;
              }
            }
            ASSERT_EQ(number(out[i]), largest);
            right_back[from] += number(gradient[i]);
            magnitude[from] += std::abs(number(gradient[i]));
          }
        }
      }
    }
    for (std::size_t at = 0; at < back.size(); ++at)
      ASSERT_NEAR(number(back[at]), right_back[at],
                  std::abs(right_back[at]) * rounding<TypeParam>() + 1e-6 * magnitude[at]);
  }
}

TYPED_TEST(PoolKernels, MaximaOfNaNAreNaN) {
  const PoolSizes sizes = pool_sizes(1, 4, 4, 8, 2, 2, 0);
  auto x = random_values<TypeParam>(4 * 4 * 8, 1);
  for (const std::size_t pixel : {0, 3, 9}) x[pixel * 8] = round_to<TypeParam>(std::nanf(""));
  Vector<TypeParam> out(2 * 2 * 8);
  Runner{}(PoolMaxima<TypeParam>{sizes, x.data(), out.data(), nullptr});
  for (std::size_t i = 0; i < out.size(); ++i) EXPECT_EQ(std::isnan(number(out[i])), i == 0 || i == 8 || i == 16) << i;
}

TYPED_TEST(PoolKernels, AveragesAndTheirGradients) {
  for (const std::size_t n_positions : {std::size_t{1}, std::size_t{49}, std::size_t{60}}) {
    const std::size_t n = 5, channels = 24;
    const auto x = random_values<TypeParam>(n * n_positions * channels, 1, 1);
    const auto gradient = random_values<TypeParam>(n * channels, 2);
    Vector<TypeParam> out(n * channels), back(x.size());
    expect_same_in_all_orders([&](Runner run) {
      run(Averages<TypeParam>{n, n_positions, channels, x.data(), out.data()});
      run(AveragesBackward<TypeParam>{n, n_positions, channels, gradient.data(), back.data()});
      return bytes_of(out, back);
    });
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::size_t image = i / channels, c = i % channels;
      double sum = 0;
      for (std::size_t p = 0; p < n_positions; ++p) sum += number(x[(image * n_positions + p) * channels + c]);
      // The host's bits, because its sums are doubles, too.
      const float factor = 1.0F / static_cast<float>(n_positions);
      EXPECT_EQ(number(out[i]), number(round_to<TypeParam>(static_cast<float>(sum) * factor)));
      for (std::size_t p = 0; p < n_positions; ++p)
        ASSERT_EQ(number(back[(image * n_positions + p) * channels + c]),
                  number(round_to<TypeParam>(to_float(gradient[i]) * factor)));
    }
  }
}

}  // namespace
}  // namespace lockstep::nn::cuda

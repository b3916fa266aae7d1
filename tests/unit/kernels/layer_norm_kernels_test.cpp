// Layer normalization against loops over rows in double.
#include <gtest/gtest.h>

#include <cmath>

#include "nn/cuda/kernels/column_sums.hpp"
#include "nn/ops/layer_norm/kernels.hpp"
#include "unit/kernels/nn_cuda.hpp"

namespace lockstep::nn::cuda {
namespace {

constexpr double layer_norm_eps = 1e-5;

/// The results of one row in double.
struct RightRow {
  template <class T>
  RightRow(const T* x, const T* gradient, const Vector<float>& weight, std::size_t n_features)
      : normalized(n_features), back(n_features) {
    const auto n = static_cast<double>(n_features);
    double mean = 0, variance = 0, sum = 0, product = 0;
    for (std::size_t c = 0; c < n_features; ++c) mean += number(x[c]) / n;
    for (std::size_t c = 0; c < n_features; ++c) variance += std::pow(number(x[c]) - mean, 2) / n;
    inverse = 1 / std::sqrt(variance + layer_norm_eps);
    const auto passed = [&](std::size_t c) { return number(gradient[c]) * number(weight[c]); };
    for (std::size_t c = 0; c < n_features; ++c) {
      normalized[c] = (number(x[c]) - mean) * inverse;
      sum += passed(c) / n;
      product += passed(c) * normalized[c] / n;
    }
    for (std::size_t c = 0; c < n_features; ++c) back[c] = (passed(c) - sum - normalized[c] * product) * inverse;
  }

  double inverse = 0;
  std::vector<double> normalized, back;
};

template <class T>
class LayerNormKernels : public ::testing::Test {};
TYPED_TEST_SUITE(LayerNormKernels, ElementTypes);

TYPED_TEST(LayerNormKernels, RowsAndTheirGradients) {
  using T = TypeParam;
  // One thread's, a warp's, those that threads take twice; with padding and without.
  for (const auto& [n_rows, n_features] :
       {std::pair<std::size_t, std::size_t>{1, 1}, {5, 8}, {37, 21}, {9, 768}, {4, 2500}}) {
    SCOPED_TRACE(fmt::format("{} rows of {}", n_rows, n_features));
    const std::size_t width = (n_features + 7) / 8 * 8, n = n_rows * width;
    const auto x = random_rows<T>(n_rows, width, n_features, 1, 2, 3);
    const auto gradient = random_rows<T>(n_rows, width, n_features, 2);
    const auto weight = random_rows<float>(1, width, n_features, 3, 1, 0.25F);
    const auto bias = random_rows<float>(1, width, n_features, 4);
    const FeatureRows rows{n_rows, n_features, width / 8};
    const GroupedRows summed{n_rows, n_rows, width};
    Vector<T> out(n), evaluated(n), back(n);
    Vector<float> mean(n_rows), inverse(n_rows), of_weight(width), of_bias(width);
    Vector<double> weight_partials(summed.n_partials()), bias_partials(summed.n_partials());
    expect_same_in_all_orders([&](Runner run) {
      run(NormalizeFeatures<T>{rows, x.data(), layer_norm_eps, weight.data(), bias.data(), out.data(), mean.data(),
                               inverse.data()});
      run(NormalizeFeatures<T>{rows, x.data(), layer_norm_eps, weight.data(), bias.data(), evaluated.data(), nullptr,
                               nullptr});
      run(NormalizeFeaturesBackward<T>{rows, x.data(), gradient.data(), weight.data(), mean.data(), inverse.data(),
                                       back.data()});
      run(PartialFeatureGradients<T>{summed, x.data(), gradient.data(), mean.data(), inverse.data(),
                                     weight_partials.data(), bias_partials.data()});
      run(ColumnSums{summed, weight_partials.data(), false, of_weight.data()});
      run(ColumnSums{summed, bias_partials.data(), false, of_bias.data()});
      return bytes_of(out, evaluated, back, mean, inverse, of_weight, of_bias);
    });
    EXPECT_EQ(bytes_of(out), bytes_of(evaluated));
    const double tolerance = 2 * rounding<T>() + 4e-6;
    std::vector<double> right_weight(width), right_bias(width);
    for (std::size_t row = 0; row < n_rows; ++row) {
      const RightRow right{x.data() + row * width, gradient.data() + row * width, weight, n_features};
      for (std::size_t c = 0; c < width; ++c) {
        const std::size_t at = row * width + c;
        const bool is_feature = c < n_features;
        const double y = is_feature ? right.normalized[c] * number(weight[c]) + number(bias[c]) : 0;
        const double dx = is_feature ? right.back[c] : 0;
        ASSERT_NEAR(number(out[at]), y, is_feature ? tolerance * (1 + std::abs(y)) : 0) << row << ' ' << c;
        ASSERT_NEAR(number(back[at]), dx, is_feature ? tolerance * (1 + right.inverse) : 0) << row << ' ' << c;
        if (!is_feature) continue;
        right_weight[c] += number(gradient[at]) * right.normalized[c];
        right_bias[c] += number(gradient[at]);
      }
    }
    for (std::size_t c = 0; c < width; ++c) {
      ASSERT_NEAR(number(of_weight[c]), right_weight[c], 1e-5 * static_cast<double>(n_rows)) << c;
      ASSERT_NEAR(number(of_bias[c]), right_bias[c], 1e-5 * static_cast<double>(n_rows)) << c;
    }
  }
}

}  // namespace
}  // namespace lockstep::nn::cuda

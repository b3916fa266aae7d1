// Batch normalization by groups, forward and backward, against sums in double.
#include <gtest/gtest.h>

#include <cmath>

#include "nn/ops/batch_norm/backward.hpp"
#include "nn/ops/batch_norm/normalize.hpp"
#include "nn/ops/batch_norm/statistics.hpp"
#include "unit/kernels/nn_cuda.hpp"

namespace lockstep::nn::cuda {
namespace {

struct Size {
  std::size_t n_rows, rows_of_group, n_channels, n_logical;
};
// One row more than groups hold, several tiles, an odd number of packs, many parts.
const std::vector<Size> batch_norm_sizes{{7, 7, 8, 3},       {37, 12, 24, 24},    {300, 150, 64, 61},
                                         {41, 20, 264, 260}, {10, 5, 2048, 2047}, {5000, 4096, 16, 16}};

constexpr double eps = 1e-5;

/// All arrays of a layer, and the expected results in double.
template <class T>
struct Layer {
  explicit Layer(const Size& of, float mean_of_x = 0.5F, float deviation_of_x = 2)
      : size{of},
        rows{size.n_rows, size.rows_of_group, size.n_channels},
        x{random_rows<T>(size.n_rows, size.n_channels, size.n_logical, 1, mean_of_x, deviation_of_x)},
        residual{random_rows<T>(size.n_rows, size.n_channels, size.n_logical, 2)},
        weight{random_rows<float>(1, size.n_channels, size.n_logical, 3)},
        bias{random_rows<float>(1, size.n_channels, size.n_logical, 4)},
        partials(rows.n_partials()),
        moments(n_statistics()),
        mean(n_statistics()),
        inverse(n_statistics()),
        out(x.size()),
        mask(x.size() / 8) {
    for (std::size_t group = 0; group < rows.n_groups(); ++group) {
      for (std::size_t c = 0; c < rows.n_channels(); ++c) {
        double sum = 0, squares = 0;
        const std::size_t first = group * size.rows_of_group, n = rows.n_rows_of(group);
        for (std::size_t row = first; row < first + n; ++row) sum += number(x[row * rows.n_channels() + c]);
        const double right = sum / static_cast<double>(n);
        for (std::size_t row = first; row < first + n; ++row)
          squares += std::pow(number(x[row * rows.n_channels() + c]) - right, 2);
        right_mean.push_back(right);
        right_variance.push_back(squares / static_cast<double>(n));
      }
    }
  }
  [[nodiscard]] std::size_t n_statistics() const { return rows.n_groups() * rows.n_channels(); }
  [[nodiscard]] std::size_t group_of(std::size_t i) const { return i / rows.n_channels() / size.rows_of_group; }
  /// The index of the statistics of element i.
  [[nodiscard]] std::size_t statistic(std::size_t i) const {
    return group_of(i) * rows.n_channels() + i % rows.n_channels();
  }
  [[nodiscard]] double normalized(std::size_t i) const {
    return (number(x[i]) - right_mean[statistic(i)]) / std::sqrt(right_variance[statistic(i)] + eps);
  }

  void take_statistics(Runner& run) {
    run(PartialMoments<T>{rows, x.data(), partials.data()});
    run(GroupMoments{rows, partials.data(), eps, moments.data(), mean.data(), inverse.data(), {}});
  }
  Normalize<T> normalize(bool adds, bool has_relu) {
    return {rows.spread(),
            x.data(),
            adds ? residual.data() : nullptr,
            mean.data(),
            inverse.data(),
            weight.data(),
            bias.data(),
            has_relu,
            out.data(),
            has_relu ? mask.data() : nullptr};
  }

  Size size;
  GroupedRows rows;
  Vector<T> x, residual;
  Vector<float> weight, bias;
  Vector<Moments> partials, moments;
  Vector<float> mean, inverse;
  Vector<T> out;
  Vector<std::uint8_t> mask;
  std::vector<double> right_mean{}, right_variance{};
};

template <class T>
class BatchNormKernels : public ::testing::Test {};
TYPED_TEST_SUITE(BatchNormKernels, ElementTypes);

TYPED_TEST(BatchNormKernels, TakesStatisticsAndNormalizesByGroups) {
  for (const Size& size : batch_norm_sizes) {
    for (const bool adds : {false, true}) {
      for (const bool has_relu : {false, true}) {
        SCOPED_TRACE(testing::Message() << size.n_rows << "x" << size.n_channels << adds << has_relu);
        Layer<TypeParam> layer{size};
        expect_same_in_all_orders([&](Runner run) {
          layer.take_statistics(run);
          run(layer.normalize(adds, has_relu));
          return bytes_of(layer.moments, layer.mean, layer.inverse, layer.out, layer.mask);
        });
        for (std::size_t s = 0; s < layer.n_statistics(); ++s) {
          ASSERT_NEAR(layer.moments[s].mean, layer.right_mean[s], 2e-6);
          ASSERT_NEAR(layer.moments[s].m2 / layer.moments[s].n, layer.right_variance[s],
                      2e-6 * layer.right_variance[s]);
        }
        for (std::size_t i = 0; i < layer.x.size(); ++i) {
          const std::size_t c = i % size.n_channels;
          double y = layer.normalized(i) * static_cast<double>(layer.weight[c]) + static_cast<double>(layer.bias[c]);
          if (adds) y += number(layer.residual[i]);
          if (c >= size.n_logical) {
            ASSERT_EQ(number(layer.out[i]), 0);
          }
          const double right = has_relu && y <= 0 ? 0 : y;
          ASSERT_NEAR(number(layer.out[i]), right, std::abs(right) * rounding<TypeParam>() + 2e-5);
          if (has_relu && std::abs(y) > 2e-5) {
            ASSERT_EQ(layer.mask[i / 8] >> i % 8 & 1, y > 0 ? 1 : 0);
          }
        }
      }
    }
  }
}

TEST(BatchNormInFloats, VariancesAreGoodFarFromZero) {
  // Neighbours of 1e4 are 0.001 apart; sums of squares would lose everything.
  Layer<float> layer{{3000, 1500, 16, 16}, 1e4F, 0.1F};
  for (std::size_t c = 0; c < 16; c += 2) layer.x[c] = -3e4F;  // an outlier, and the first value
  const Layer<float> fresh{{3000, 1500, 16, 16}, 1e4F, 0.1F};
  Runner run;
  layer.take_statistics(run);
  for (std::size_t c = 1; c < 16; c += 2) {
    const double variance = layer.moments[c].m2 / layer.moments[c].n;
    EXPECT_NEAR(variance, fresh.right_variance[c], 1e-5 * fresh.right_variance[c]);
    EXPECT_NEAR(layer.moments[c].mean, fresh.right_mean[c], 1e-6);
  }
  for (std::size_t c = 0; c < 16; c += 2) {
    double sum = 0, squares = 0;
    for (std::size_t row = 0; row < 1500; ++row) sum += static_cast<double>(layer.x[row * 16 + c]);
    for (std::size_t row = 0; row < 1500; ++row)
      squares += std::pow(static_cast<double>(layer.x[row * 16 + c]) - sum / 1500, 2);
    EXPECT_NEAR(layer.moments[c].m2, squares, 1e-5 * squares);
  }
}

TEST(BatchNormInFloats, HideNoNaN) {
  Layer<float> layer{{40, 20, 8, 8}};
  layer.x[8 * 25 + 3] = std::numeric_limits<float>::quiet_NaN();
  Runner run;
  layer.take_statistics(run);
  run(layer.normalize(false, true));
  for (std::size_t i = 0; i < layer.x.size(); ++i) EXPECT_EQ(std::isnan(layer.out[i]), i >= 160 && i % 8 == 3) << i;
}

TEST(BatchNormInFloats, MoveRunningStatisticsAsTheHostDoes) {
  Layer<float> layer{{37, 12, 24, 24}};
  Runner run;
  layer.take_statistics(run);
  test::Reachable<core::StepNumbers> numbers;
  Vector<float> mean(24), variance(24);
  const auto move = [&](double share, bool begins) {
    numbers->share_of_step = share;
    numbers->begins_step = begins;
    run(MoveStatistics{4, 24, layer.moments.data(), 0.1, numbers.get(), mean.data(), variance.data()});
  };
  mean.assign(24, 3);
  variance.assign(24, 5);
  move(0, true);
  EXPECT_EQ(mean, Vector<float>(24, 3));
  for (const auto& [share, begins] : {std::pair{1.0, true}, {0.25, true}, {0.25, false}}) {
    mean.assign(24, 3);
    variance.assign(24, 5);
    move(share, begins);
    for (std::size_t c = 0; c < 24; ++c) {
      double of_means = 0, of_variances = 0;
      for (std::size_t group = 0; group < 4; ++group) {
        const double n = group < 3 ? 12 : 1, s = n / 37;
        of_means += s * layer.right_mean[group * 24 + c];
        if (n > 1) of_variances += s * layer.right_variance[group * 24 + c] * (n / (n - 1));
      }
      const double kept = begins ? 0.9 : 1, taken = 0.1 * share;
      EXPECT_NEAR(static_cast<double>(mean[c]), kept * 3 + taken * of_means, 1e-6);
      // A group of one value has no unbiased variance; planning refuses it.
      EXPECT_TRUE(std::isnan(variance[c]) ||
                  std::abs(static_cast<double>(variance[c]) - kept * 5 - taken * of_variances) < 1e-5);
    }
  }
}

TEST(BatchNormInFloats, NormalizeByRunningStatisticsInEvaluation) {
  Layer<float> layer{{30, 30, 8, 8}};
  const Vector<float> running_mean{0, 1, 2, 3, 4, 5, 6, 7}, running_variance{1, 2, 3, 4, 5, 6, 7, 8};
  Runner run;
  run(InvertDeviations{8, running_variance.data(), eps, layer.inverse.data()});
  layer.mean = running_mean;
  run(layer.normalize(false, false));
  for (std::size_t i = 0; i < layer.x.size(); ++i) {
    const std::size_t c = i % 8;
    const double y = (number(layer.x[i]) - running_mean[c]) / std::sqrt(running_variance[c] + eps) * layer.weight[c];
    EXPECT_NEAR(number(layer.out[i]), y + layer.bias[c], 1e-5);
  }
}

/// Gradients of a layer with all options, or none.
template <class T>
struct Backward {
  Backward(Layer<T>& of, bool has_skip, bool has_mask, bool has_residual)
      : layer{of},
        gradient{random_rows<T>(of.size.n_rows, of.rows.n_channels(), of.rows.n_channels(), 7)},
        skip{random_rows<T>(of.size.n_rows, of.rows.n_channels(), of.rows.n_channels(), 8)},
        passed{gradient.data(), has_skip ? skip.data() : nullptr, has_mask ? of.mask.data() : nullptr},
        residual_gradient(has_residual ? gradient.size() : 0),
        partials(of.rows.n_partials()),
        sums(of.n_statistics()),
        offset(of.n_statistics()),
        slope(of.n_statistics()),
        of_weight(of.rows.n_channels()),
        of_bias(of.rows.n_channels()),
        out(gradient.size()) {}

  void run_all(Runner& run, bool adds) {
    PassedGradient<T> again = passed;
    if (!residual_gradient.empty()) again = {residual_gradient.data(), nullptr, nullptr};
    run(PartialGradients<T>{layer.rows, layer.x.data(), passed, layer.mean.data(),
                            residual_gradient.empty() ? nullptr : residual_gradient.data(), partials.data()});
    run(GroupGradients{
        layer.rows, partials.data(), layer.inverse.data(), sums.data(), offset.data(), slope.data(), {}});
    run(ScaleShiftGradients{layer.rows.n_groups(), layer.rows.n_channels(), sums.data(), layer.inverse.data(), adds,
                            of_weight.data(), of_bias.data()});
    run(NormalizeBackward<T>{layer.rows.spread(), layer.x.data(), again, layer.mean.data(), layer.inverse.data(),
                             offset.data(), slope.data(), layer.weight.data(), out.data()});
  }
  /// The gradient of element i before ReLU.
  [[nodiscard]] double right(std::size_t i) const {
    if (passed.mask != nullptr && (layer.mask[i / 8] >> i % 8 & 1) == 0) return 0;
    return number(gradient[i]) + (passed.skip == nullptr ? 0 : number(skip[i]));
  }

  Layer<T>& layer;
  Vector<T> gradient, skip;
  PassedGradient<T> passed;
  Vector<T> residual_gradient;
  Vector<GradientSums> partials, sums;
  Vector<float> offset, slope, of_weight, of_bias;
  Vector<T> out;
};

TYPED_TEST(BatchNormKernels, GradientsByGroups) {
  for (const Size& size : batch_norm_sizes) {
    for (const bool has_all : {false, true}) {
      SCOPED_TRACE(testing::Message() << size.n_rows << "x" << size.n_channels << has_all);
      Layer<TypeParam> layer{size};
      Runner forward;
      layer.take_statistics(forward);
      forward(layer.normalize(has_all, has_all));
      Backward<TypeParam> backward{layer, has_all, has_all, has_all};
      expect_same_in_all_orders([&](Runner run) {
        backward.of_weight.assign(size.n_channels, 3);
        backward.run_all(run, has_all);
        return bytes_of(backward.sums, backward.of_weight, backward.out, backward.residual_gradient);
      });
      Vector<double> sum(layer.n_statistics()), product(layer.n_statistics());
      Vector<double> of_weight(size.n_channels, has_all ? 3 : 0);
      for (std::size_t i = 0; i < layer.x.size(); ++i) {
        sum[layer.statistic(i)] += backward.right(i);
        product[layer.statistic(i)] += backward.right(i) * layer.normalized(i);
        of_weight[i % size.n_channels] += backward.right(i) * layer.normalized(i);
        if (!has_all) continue;
        ASSERT_NEAR(number(backward.residual_gradient[i]), backward.right(i),
                    std::abs(backward.right(i)) * rounding<TypeParam>() + 1e-7);
      }
      for (std::size_t c = 0; c < size.n_channels; ++c)
        ASSERT_NEAR(backward.of_weight[c], of_weight[c], 2e-6 * static_cast<double>(size.n_rows) + 1e-5);
      for (std::size_t i = 0; i < layer.x.size(); ++i) {
        const std::size_t s = layer.statistic(i);
        const auto n = static_cast<double>(layer.rows.n_rows_of(layer.group_of(i)));
        // The gradient of the residual is rounded before it is read again.
        const double g = has_all ? number(backward.residual_gradient[i]) : backward.right(i);
        const double factor = layer.weight[i % size.n_channels] / std::sqrt(layer.right_variance[s] + eps);
        const double right = (g - sum[s] / n - layer.normalized(i) * product[s] / n) * factor;
        ASSERT_NEAR(number(backward.out[i]), right, std::abs(right) * rounding<TypeParam>() + 1e-5 * std::abs(factor));
      }
    }
  }
}

TEST(BatchNormInFloats, GradientsAreThoseOfFiniteDifferences) {
  Layer<float> layer{{18, 9, 8, 8}};
  Runner run;
  layer.take_statistics(run);
  run(layer.normalize(true, false));
  Backward<float> backward{layer, false, false, false};
  backward.run_all(run, false);
  const auto loss = [&] {
    layer.take_statistics(run);
    run(layer.normalize(true, false));
    double sum = 0;
    for (std::size_t i = 0; i < layer.x.size(); ++i) sum += number(layer.out[i]) * number(backward.gradient[i]);
    return sum;
  };
  const auto slope = [&](float& at) {
    const float old = at, h = 1e-2F;
    at = old + h;
    const double above = loss();
    at = old - h;
    const double below = loss();
    at = old;
    return (above - below) / (2 * static_cast<double>(h));
  };
  for (std::size_t i = 0; i < layer.x.size(); ++i)
    EXPECT_NEAR(slope(layer.x[i]), static_cast<double>(backward.out[i]), 5e-3);
  for (std::size_t c = 0; c < 8; ++c) {
    EXPECT_NEAR(slope(layer.weight[c]), static_cast<double>(backward.of_weight[c]), 5e-3);
    EXPECT_NEAR(slope(layer.bias[c]), static_cast<double>(backward.of_bias[c]), 5e-3);
  }
}

}  // namespace
}  // namespace lockstep::nn::cuda

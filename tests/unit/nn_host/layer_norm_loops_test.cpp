#include "nn/ops/layer_norm/layer_norm_loops.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "core/rng.hpp"

namespace lockstep::nn::host {
namespace {

constexpr double layer_norm_eps = 1e-5;

template <class T>
class LayerNormLoopsTest : public testing::Test {
 protected:
  /// Draws a table whose rows have different means and deviations.
  void draw(std::size_t n_rows, std::size_t n_columns) {
    table = {n_rows, n_columns};
    core::Random random{7};
    const auto fill = [&](auto& values, std::size_t n, float center) {
      values.resize(n);
      for (auto& value : values)
        value = std::decay_t<decltype(value)>{center + static_cast<float>(random.uniform() - 0.5)};
    };
    fill(x, n_rows * n_columns, 0);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto row = static_cast<float>(i / n_columns);
      x[i] = T{static_cast<float>(x[i]) * (row + 1) + row / 2};
    }
    fill(gradient, x.size(), 0);
    fill(weight, n_columns, 1);
    fill(bias, n_columns, 0);
  }

  struct Results {
    std::vector<T> out, back;
    std::vector<RowMoments> moments;
    std::vector<double> of_weight, of_bias;
  };
  Results run(const LayerNormLoops& set) const {
    Results results{std::vector<T>(x.size()), gradient, std::vector<RowMoments>(table.n_rows),
                    std::vector<double>(table.n_columns), std::vector<double>(table.n_columns)};
    const LayerNormTable<T>& loops = set.of<T>();
    loops.normalize(table, x.data(), layer_norm_eps, weight.data(), bias.data(), results.moments.data(),
                    results.out.data());
    const std::size_t part = (table.n_columns + 2) / 3;  // as threads share columns
    for (std::size_t first = 0; first < table.n_columns; first += part)
      loops.add_gradients(table, {first, std::min(part, table.n_columns - first)}, x.data(), gradient.data(),
                          results.moments.data(), results.of_weight.data(), results.of_bias.data());
    loops.backward(table, x.data(), results.back.data(), weight.data(), results.moments.data(), results.back.data());
    return results;
  }

  /// Compares the results with loops in double precision.
  void expect_right(const Results& results) const {
    const double rounding = sizeof(T) == sizeof(float) ? 2e-6 : 0x1p-8;
    const auto n = static_cast<double>(table.n_columns);
    std::vector<double> of_weight(table.n_columns), of_bias(table.n_columns);
    double of_rows = 0;  // the tolerance of sums over rows
    for (std::size_t begin = 0; begin < x.size(); begin += table.n_columns) {
      const auto number = [&](const std::vector<T>& values, std::size_t c) {
        return static_cast<double>(static_cast<float>(values[begin + c]));
      };
      double mean = 0, variance = 0, sum = 0, product = 0;
      for (std::size_t c = 0; c < table.n_columns; ++c) mean += number(x, c) / n;
      for (std::size_t c = 0; c < table.n_columns; ++c) variance += std::pow(number(x, c) - mean, 2) / n;
      const double inverse = 1 / std::sqrt(variance + layer_norm_eps);
      const double tolerance = rounding * (1 + std::abs(mean) * inverse);  // a mean in float32 is rounded, too
      of_rows += 2 * tolerance;
      const auto normalized = [&](std::size_t c) { return (number(x, c) - mean) * inverse; };
      const auto passed = [&](std::size_t c) { return number(gradient, c) * static_cast<double>(weight[c]); };
      for (std::size_t c = 0; c < table.n_columns; ++c) {
        sum += passed(c) / n;
        product += passed(c) * normalized(c) / n;
        of_weight[c] += number(gradient, c) * normalized(c);
        of_bias[c] += number(gradient, c);
      }
      for (std::size_t c = 0; c < table.n_columns; ++c) {
        const double y = normalized(c) * static_cast<double>(weight[c]) + static_cast<double>(bias[c]);
        ASSERT_NEAR(number(results.out, c), y, tolerance * (1 + std::abs(y))) << begin << ' ' << c;
        const double dx = (passed(c) - sum - normalized(c) * product) * inverse;
        ASSERT_NEAR(number(results.back, c), dx, tolerance * (1 + 4 * inverse)) << begin << ' ' << c;
      }
    }
    for (std::size_t c = 0; c < table.n_columns; ++c) {
      ASSERT_NEAR(results.of_weight[c], of_weight[c], of_rows) << c;
      ASSERT_NEAR(results.of_bias[c], of_bias[c], of_rows) << c;
    }
  }

  static void expect_same_bits(const Results& a, const Results& b) {
    const auto same = [](const auto& left, const auto& right) {
      return std::memcmp(left.data(), right.data(), left.size() * sizeof(left[0])) == 0;
    };
    EXPECT_TRUE(same(a.out, b.out));
    EXPECT_TRUE(same(a.back, b.back));
    EXPECT_TRUE(same(a.moments, b.moments));
    EXPECT_TRUE(same(a.of_weight, b.of_weight));
    EXPECT_TRUE(same(a.of_bias, b.of_bias));
  }

  RowTable table{};
  std::vector<T> x{}, gradient{};
  std::vector<float> weight{}, bias{};
};
using LayerNormElements = testing::Types<float, core::bfloat16>;
TYPED_TEST_SUITE(LayerNormLoopsTest, LayerNormElements);

TYPED_TEST(LayerNormLoopsTest, AreAsInDoubleAndTheSameBitsInAllSets) {
  for (const std::size_t n_columns : {1U, 2U, 15U, 16U, 17U, 64U, 300U, 768U}) {
    for (const std::size_t n_rows : {1U, 7U, 40U}) {
      SCOPED_TRACE(std::to_string(n_rows) + " rows of " + std::to_string(n_columns));
      this->draw(n_rows, n_columns);
      const auto sets = core::available_loops<LayerNormLoops>();
      const auto plain = this->run(*sets.front());
      this->expect_right(plain);
      for (const LayerNormLoops* set : sets) this->expect_same_bits(this->run(*set), plain);
    }
  }
}

}  // namespace
}  // namespace lockstep::nn::host

// Elementwise kernels, sums over rows, and copies of columns.
#include <gtest/gtest.h>

#include <cmath>

#include "nn/cuda/kernels/column_sums.hpp"
#include "nn/cuda/kernels/elementwise.hpp"
#include "nn/ops/concat/kernels.hpp"
#include "unit/kernels/nn_cuda.hpp"

namespace lockstep::nn::cuda {
namespace {

template <class T>
class ElementKernels : public ::testing::Test {
 protected:
  /// Runs a body that writes `out`, and expects right(i) for each element, rounded once.
  template <class Body, class F>
  void expect(const Body& body, const F& right) {
    expect_same_in_all_orders([&](Runner run) {
      run(body);
      return bytes_of(out);
    });
    for (std::size_t i = 0; i < out.size(); ++i)
      ASSERT_EQ(number(out[i]), number(round_to<T>(static_cast<float>(right(i))))) << i;
  }

  static constexpr std::size_t width = 24, n_elements = 37 * width;
  Vector<T> x1 = random_rows<T>(37, width, 21, 1), x2 = random_rows<T>(37, width, 21, 2);
  Vector<T> y = random_rows<T>(37, width, 21, 3), out = Vector<T>(n_elements);
};
TYPED_TEST_SUITE(ElementKernels, ElementTypes);

TYPED_TEST(ElementKernels, ReluSumsAndBias) {
  using T = TypeParam;
  const std::size_t n = this->n_elements;
  const auto a = [&](std::size_t i) { return to_float(this->x1[i]); };
  const auto b = [&](std::size_t i) { return to_float(this->x2[i]); };
  const auto positive = [](float x) { return x > 0 ? x : 0; };
  const auto passes = [&](std::size_t i) { return number(this->y[i]) > 0 ? 1.0F : 0.0F; };
  this->expect(Rectify<T>{n, this->x1.data(), this->out.data()}, [&](std::size_t i) { return positive(a(i)); });
  this->expect(RectifyBackward<T>{n, this->y.data(), this->x1.data(), nullptr, this->out.data()},
               [&](std::size_t i) { return passes(i) * a(i); });
  this->expect(RectifyBackward<T>{n, this->y.data(), this->x1.data(), this->x2.data(), this->out.data()},
               [&](std::size_t i) { return passes(i) * (a(i) + b(i)); });
  this->expect(Sum<T>{n, this->x1.data(), this->x2.data(), false, this->out.data()},
               [&](std::size_t i) { return a(i) + b(i); });
  this->expect(Sum<T>{n, this->x1.data(), this->x2.data(), true, this->out.data()},
               [&](std::size_t i) { return positive(a(i) + b(i)); });
  const auto bias = random_values<float>(this->width, 4);
  for (const bool has_relu : {false, true})
    this->expect(AddBias<T>{n, this->width, this->x1.data(), bias.data(), has_relu, this->out.data()},
                 [&](std::size_t i) {
                   const float sum = a(i) + bias[i % this->width];
                   return has_relu ? positive(sum) : sum;
                 });
  this->y[5] = round_to<T>(std::nanf(""));
  Runner{}(Rectify<T>{n, this->y.data(), this->out.data()});
  EXPECT_TRUE(std::isnan(number(this->out[5])));
}

TYPED_TEST(ElementKernels, SumsOverRows) {
  for (const auto& [n_rows, channels] : {std::pair<std::size_t, std::size_t>{1, 8}, {1000, 24}, {77, 2048}}) {
    const auto x = random_values<TypeParam>(n_rows * channels, 1, 1);
    const GroupedRows rows{n_rows, n_rows, channels};
    Vector<double> partials(rows.n_partials());
    EXPECT_EQ(column_sums_workspace_bytes(rows), partials.size() * 8);
    Vector<float> sums(channels);
    for (const bool adds : {false, true}) {
      expect_same_in_all_orders([&](Runner run) {
        sums.assign(channels, 5);
        run(PartialSums<TypeParam>{rows, x.data(), partials.data()});
        run(ColumnSums{rows, partials.data(), adds, sums.data()});
        return bytes_of(sums);
      });
      for (std::size_t c = 0; c < channels; ++c) {
        double right = adds ? 5 : 0, magnitude = 5;
        for (std::size_t row = 0; row < n_rows; ++row) {
          right += number(x[row * channels + c]);
          magnitude += std::abs(number(x[row * channels + c]));
        }
        ASSERT_NEAR(static_cast<double>(sums[c]), right, 1e-6 * magnitude);
      }
    }
  }
}

TYPED_TEST(ElementKernels, FeaturesSideBySideAndApart) {
  using T = TypeParam;
  // Parts of 8 and 16 columns in packs; parts of 3 and 18 columns one by one, with padding after them.
  for (const auto& [first, second] : {std::pair<std::size_t, std::size_t>{8, 16}, {3, 18}}) {
    const auto a = random_rows<T>(11, (first + 7) / 8 * 8, first, 1), b = random_rows<T>(11, 24, second, 2);
    const std::size_t a_width = a.size() / 11;
    Vector<T> both(11 * 24, round_to<T>(9)), apart(11 * 24, round_to<T>(9));
    expect_same_in_all_orders([&, n = first, m = second](Runner run) {
      run(CopyColumns<T>{11, n, 0, a.data(), a_width, 0, both.data(), 24, 0});
      run(CopyColumns<T>{11, m, 24 - n - m, b.data(), 24, 0, both.data(), 24, n});
      run(CopyColumns<T>{11, m, 24 - m, both.data(), 24, n, apart.data(), 24, 0});
      return bytes_of(both, apart);
    });
    for (std::size_t row = 0; row < 11; ++row) {
      for (std::size_t c = 0; c < 24; ++c) {
        const std::size_t at = row * 24 + c;
        const double right = c < first            ? number(a[row * a_width + c])
                             : c < first + second ? number(b[row * 24 + c - first])
                                                  : 0;
        ASSERT_EQ(number(both[at]), right);
        ASSERT_EQ(number(apart[at]), c < second ? number(b[at]) : 0);
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::nn::cuda

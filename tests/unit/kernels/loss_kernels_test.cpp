// Losses against sums in double; for gradients the scale, the padding, and the effect of labels out of range.
#include <gtest/gtest.h>

#include <cmath>

#include "nn/cuda/kernels/loss.hpp"
#include "nn/cuda/kernels/softmax_cross_entropy.hpp"
#include "unit/kernels/nn_cuda.hpp"

namespace lockstep::nn::cuda {
namespace {

TEST(Exponential, IsThatOfDoublesToTheLastPlaces) {
  double worst = 0;
  for (float x = -87; x < 88.7F; x += 0.0137F) {
    const double right = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(static_cast<double>(exponential(x)) - right) / right);
  }
  EXPECT_LT(worst, 1.2e-7);
  EXPECT_EQ(exponential(0), 1);
  EXPECT_EQ(exponential(-200), 0);
  EXPECT_EQ(exponential(-std::numeric_limits<float>::infinity()), 0);
  EXPECT_NEAR(static_cast<double>(exponential(-100)), std::exp(-100.0), 0x1p-149);
  EXPECT_TRUE(std::isinf(exponential(89)));
  EXPECT_TRUE(std::isnan(exponential(std::numeric_limits<float>::quiet_NaN())));
}

template <class T>
class LossKernels : public ::testing::Test {
 protected:
  static constexpr double factor = 0.25 * 4 * 2;

  LossKernels() {
    numbers->scale = 4;
    numbers->sample_weight = 0.25F;
    *loss_scale.get() = 2;
  }
  void fill(std::size_t n, std::size_t outputs) {
    n_rows = n;
    n_outputs = outputs;
    row_elements = (outputs + 7) / 8 * 8;
    x = random_rows<T>(n, row_elements, n_outputs, 1, 0, 3);
    gradient.assign(x.size(), round_to<T>(77));
    losses.assign(n, {});
    for (std::size_t row = 0; row < n; ++row) labels.push_back(static_cast<std::int64_t>(row * 7 % outputs));
  }
  LossRows<T> rows() {
    return {n_rows,        n_outputs,        row_elements,  x.data(),           gradient.data(),
            numbers.get(), loss_scale.get(), losses.data(), has_bad_label.get()};
  }
  const T* row(std::size_t i) const { return x.data() + i * row_elements; }
  /// Expects every number of the gradient near `right`(row, class); padding is 0.
  template <class F>
  void expect_gradient(const F& right) const {
    for (std::size_t i = 0; i < n_rows; ++i) {
      for (std::size_t c = 0; c < row_elements; ++c) {
        const double value = number(gradient[i * row_elements + c]), wanted = c < n_outputs ? right(i, c) * factor : 0;
        // float16's smallest numbers are further apart than its rounding implies.
        ASSERT_NEAR(value, wanted, std::abs(wanted) * (rounding<T>() + 1e-6) + (sizeof(T) == 2 ? 6e-8 : 1e-7) * factor);
      }
    }
  }

  test::Reachable<core::StepNumbers> numbers{};
  test::Reachable<float> loss_scale{};
  std::size_t n_rows = 0, n_outputs = 0, row_elements = 0;
  Vector<T> x{}, gradient{};
  Vector<SampleLoss> losses{};
  Vector<std::int64_t> labels{};
  test::Reachable<std::uint32_t> has_bad_label{};
};
TYPED_TEST_SUITE(LossKernels, ElementTypes);

TYPED_TEST(LossKernels, CrossEntropyOfSoftmax) {
  for (const std::size_t outputs : {std::size_t{1}, std::size_t{10}, std::size_t{1000}, std::size_t{9001}}) {
    for (const double smoothing : {0.0, 0.1}) {
      for (const std::size_t most_scratch : {std::size_t{1024}, std::size_t{48} << 10U}) {
        SCOPED_TRACE(outputs);
        this->fill(5, outputs);
        const auto n = static_cast<double>(outputs);
        expect_same_in_all_orders([&](Runner run) {
          run(SoftmaxCrossEntropy<TypeParam>{this->rows(), this->labels.data(), smoothing, most_scratch});
          Bytes all = bytes_of(this->gradient);
          for (const SampleLoss& one : this->losses) {  // without the loss, because logarithms of libraries differ
            const Bytes more = bytes_of(std::vector{one.is_top1, one.is_top5});
            all.insert(all.end(), more.begin(), more.end());
          }
          return all;
        });
        Vector<double> log_sums;
        for (std::size_t i = 0; i < 5; ++i) {
          double sum = 0, total = 0;
          for (std::size_t c = 0; c < outputs; ++c) {
            sum += std::exp(number(this->row(i)[c]));
            total += number(this->row(i)[c]);
          }
          log_sums.push_back(std::log(sum));
          const double of_label = number(this->row(i)[static_cast<std::size_t>(this->labels[i])]);
          const double right = (1 - smoothing) * (std::log(sum) - of_label) + smoothing * (std::log(sum) - total / n);
          EXPECT_NEAR(this->losses[i].loss, right, 1e-6 * (1 + right));
        }
        this->expect_gradient([&](std::size_t i, std::size_t c) {
          const double target = static_cast<std::int64_t>(c) == this->labels[i] ? 1 - smoothing : 0;
          return std::exp(number(this->row(i)[c]) - log_sums[i]) - smoothing / n - target;
        });
        EXPECT_EQ(*this->has_bad_label, 0U);
      }
    }
  }
}

TYPED_TEST(LossKernels, ReadsLogitsBeforeItWritesGradientsInTheirPlace) {
  for (const std::size_t most_scratch : {std::size_t{0}, std::size_t{4096}}) {
    this->fill(3, 101);
    SoftmaxCrossEntropy<TypeParam> body{this->rows(), this->labels.data(), 0.1, most_scratch};
    Runner{}(body);
    body.rows.gradient = this->x.data();
    expect_same_in_all_orders([&, logits = this->x](Runner run) {
      this->x = logits;
      run(body);
      return bytes_of(this->x);
    });
    EXPECT_EQ(bytes_of(this->x), bytes_of(this->gradient));
  }
}

TYPED_TEST(LossKernels, RanksLabelsAsTheHostDoes) {
  this->fill(4, 6);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Vector<Vector<float>> rows{{2, 2, 1, 0, 0, 0},     // label 1: the first of equal outputs ranks first
                                   {5, 4, 3, 2, 1, 0},     // label 5: one too far
                                   {nan, 4, 3, 2, 1, 0},   // label 1: NaN ranks first
                                   {0, nan, 3, 2, 1, 0}};  // label 1: no number itself
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t c = 0; c < 6; ++c) this->x[i * 8 + c] = round_to<TypeParam>(rows[i][c]);
  this->labels = {1, 5, 1, 1};
  const auto expect = [&] {
    const Vector<std::uint32_t> top1{0, 0, 0, 0}, top5{1, 0, 1, 0};
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(this->losses[i].is_top1, top1[i]) << i;
      EXPECT_EQ(this->losses[i].is_top5, top5[i]) << i;
    }
  };
  Runner{}(SoftmaxCrossEntropy<TypeParam>{this->rows(), this->labels.data(), 0});
  expect();
  EXPECT_TRUE(std::isnan(this->losses[2].loss));
  Runner{}(NegativeLog<TypeParam>{this->rows(), this->labels.data()});
  expect();
  this->labels = {0, 0, 2, 2};
  Runner{}(NegativeLog<TypeParam>{this->rows(), this->labels.data()});
  EXPECT_EQ(this->losses[0].is_top1, 1U);
  EXPECT_EQ(this->losses[1].is_top1, 1U);
}

TYPED_TEST(LossKernels, TellsOfLabelsThatAreNoClass) {
  this->fill(3, 10);
  this->labels = {3, 10, -1};
  Runner{}(SoftmaxCrossEntropy<TypeParam>{this->rows(), this->labels.data(), 0.1});
  EXPECT_EQ(*this->has_bad_label, 1U);
  EXPECT_GT(this->losses[0].loss, 0);
  EXPECT_EQ(this->losses[1].loss, 0);
  for (std::size_t i = this->row_elements; i < this->gradient.size(); ++i) EXPECT_EQ(number(this->gradient[i]), 0);
  *this->has_bad_label = 0;
  Runner{}(NegativeLog<TypeParam>{this->rows(), this->labels.data()});
  EXPECT_EQ(*this->has_bad_label, 1U);
  EXPECT_EQ(this->losses[2].loss, 0);
}

TYPED_TEST(LossKernels, NegativeLogOfProbabilities) {
  this->fill(7, 37);
  expect_same_in_all_orders([&](Runner run) {
    run(NegativeLog<TypeParam>{this->rows(), this->labels.data()});
    return bytes_of(this->gradient);
  });
  for (std::size_t i = 0; i < 7; ++i)
    EXPECT_EQ(this->losses[i].loss, -number(this->row(i)[static_cast<std::size_t>(this->labels[i])]));
  this->expect_gradient(
      [&](std::size_t i, std::size_t c) { return static_cast<std::int64_t>(c) == this->labels[i] ? -1.0 : 0.0; });
}

TYPED_TEST(LossKernels, MeanOfSquares) {
  this->fill(3, 11);
  const auto targets = random_values<float>(3 * 11, 5);
  expect_same_in_all_orders([&](Runner run) {
    run(MeanSquare<TypeParam>{this->rows(), targets.data()});
    return bytes_of(this->gradient);
  });
  const auto difference = [&](std::size_t i, std::size_t c) {
    return number(this->row(i)[c]) - static_cast<double>(targets[i * 11 + c]);
  };
  for (std::size_t i = 0; i < 3; ++i) {
    double right = 0;
    for (std::size_t c = 0; c < 11; ++c) right += difference(i, c) * difference(i, c) / 11;
    EXPECT_NEAR(this->losses[i].loss, right, 1e-14 * right);
  }
  this->expect_gradient([&](std::size_t i, std::size_t c) { return 2 * difference(i, c) / 11; });
}

TYPED_TEST(LossKernels, NeedsNoGradientInEvaluation) {
  this->fill(2, 20);
  LossRows<TypeParam> rows = this->rows();
  Runner{}(SoftmaxCrossEntropy<TypeParam>{rows, this->labels.data(), 0});
  const double loss = this->losses[1].loss;
  rows.gradient = nullptr;
  rows.numbers = nullptr;
  Runner{}(SoftmaxCrossEntropy<TypeParam>{rows, this->labels.data(), 0});
  EXPECT_EQ(this->losses[1].loss, loss);
}

TEST(SumLosses, AddsRowsToWhatIsThere) {
  for (const std::size_t n : {std::size_t{1}, std::size_t{255}, std::size_t{1000}}) {
    const auto values = random_values<float>(n, 3);
    Vector<SampleLoss> losses;
    double right = 2;
    for (std::size_t i = 0; i < n; ++i) {
      losses.push_back({static_cast<double>(values[i]), i % 2 == 0 ? 1U : 0U, 1});
      right += static_cast<double>(values[i]);
    }
    test::Reachable<LossTotals> totals;
    expect_same_in_all_orders([&](Runner run) {
      *totals = {2, 10, 20, 30};
      run(SumLosses{n, losses.data(), totals.get()});
      return bytes_of(std::vector{*totals});
    });
    EXPECT_NEAR(totals->loss, right, 1e-12);
    EXPECT_EQ(totals->n, 10 + n);
    EXPECT_EQ(totals->n_top1, 20 + (n + 1) / 2);
    EXPECT_EQ(totals->n_top5, 30 + n);
  }
}

}  // namespace
}  // namespace lockstep::nn::cuda

// Losses against sums in double; for gradients the scale, the padding, and the effect of labels out of range.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "nn/cuda/kernels/loss.hpp"
#include "nn/cuda/kernels/softmax_cross_entropy.hpp"
#include "unit/kernels/nn_cuda.hpp"

namespace lockstep::nn::cuda {
namespace {

TEST(Exponential, IsThatOfDoublesToTheLastPlaces) {
  double worst = 0;
  for (std::uint32_t bits = 0; bits < 0x42ae'8000; bits += 4001) {  // to -87.25
    const auto x = static_cast<double>(std::bit_cast<float>(bits));
    const double error = std::abs(static_cast<double>(exponential(static_cast<float>(-x))) * std::exp(x) - 1);
    worst = std::max(worst, error / (2 + x / 4));
  }
  EXPECT_LT(worst, 0x1p-24);
  EXPECT_GT(worst, 0x1p-26) << "float32 cannot do better";
  EXPECT_EQ(exponential(0), 1);
  EXPECT_EQ(exponential(-87.34F), 0);
  EXPECT_EQ(exponential(-1e30F), 0);
  EXPECT_EQ(exponential(-std::numeric_limits<float>::infinity()), 0);
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
    labels.clear();
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
  // A warp has a row of up to 1024 outputs; of 50257 each thread of a block has several packs.
  for (const std::size_t outputs : {1U, 10U, 1000U, 1024U, 1025U, 50257U}) {
    for (const double smoothing : {0.0, 0.1}) {
      SCOPED_TRACE(outputs);
      this->fill(outputs == 10 ? 19 : 2, outputs);
      const auto n = static_cast<double>(outputs);
      expect_same_in_all_orders([&](Runner run) {
        run(SoftmaxCrossEntropy<TypeParam>{this->rows(), this->labels.data(), smoothing});
        Bytes all = bytes_of(this->gradient);
        for (const SampleLoss& one : this->losses) {  // without the loss, because logarithms of libraries differ
          const Bytes more = bytes_of(std::vector{one.is_top1, one.is_top5});
          all.insert(all.end(), more.begin(), more.end());
        }
        return all;
      });
      Vector<double> log_sums;
      for (std::size_t i = 0; i < this->n_rows; ++i) {
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

// Each thread's sum is relative to the largest number so far, which changes with every pack of ascending numbers.
TYPED_TEST(LossKernels, CrossEntropyOfAscendingAndOfHugeNumbers) {
  for (const std::size_t outputs : {std::size_t{1000}, std::size_t{20000}}) {
    for (const float step : {1e-3F, 3.0F}) {
      SCOPED_TRACE(outputs);
      this->fill(1, outputs);
      for (std::size_t c = 0; c < outputs; ++c) this->x[c] = round_to<TypeParam>(step * static_cast<float>(c) - 30000);
      this->labels[0] = static_cast<std::int64_t>(outputs) - 3;
      Runner{}(SoftmaxCrossEntropy<TypeParam>{this->rows(), this->labels.data(), 0});
      const double max = number(this->row(0)[outputs - 1]);
      double sum = 0;
      for (std::size_t c = 0; c < outputs; ++c) sum += std::exp(number(this->row(0)[c]) - max);
      const double right = max + std::log(sum) - number(this->row(0)[outputs - 3]);
      EXPECT_NEAR(this->losses[0].loss, right, 2e-6 * (1 + right));
      this->expect_gradient([&](std::size_t, std::size_t c) {
        return std::exp(number(this->row(0)[c]) - max) / sum - (c == outputs - 3 ? 1 : 0);
      });
    }
  }
}

TYPED_TEST(LossKernels, CrossEntropyOfWhatIsNotFiniteIsNaN) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const std::size_t outputs : {std::size_t{100}, std::size_t{3000}}) {
    for (const float value : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()}) {
      SCOPED_TRACE(outputs);
      this->fill(2, outputs);
      for (std::size_t c = 0; c < 9; ++c) this->x[c] = round_to<TypeParam>(value);  // all that a thread reads first
      this->x[outputs - 1] = round_to<TypeParam>(value);
      this->labels = {20, 4};
      Runner{}(SoftmaxCrossEntropy<TypeParam>{this->rows(), this->labels.data(), 0});
      EXPECT_TRUE(std::isnan(this->losses[0].loss)) << value;
      EXPECT_TRUE(std::isfinite(this->losses[1].loss));
      for (std::size_t c = 0; c < outputs; ++c)
        ASSERT_EQ(std::isfinite(number(this->gradient[c])), value == -infinity) << c;
      if (value == -infinity) {
        EXPECT_EQ(number(this->gradient[8]), 0);
      }
    }
  }
}

TYPED_TEST(LossKernels, ReadsLogitsBeforeItWritesGradientsInTheirPlace) {
  for (const std::size_t outputs : {std::size_t{101}, std::size_t{5000}}) {
    this->fill(3, outputs);
    SoftmaxCrossEntropy<TypeParam> body{this->rows(), this->labels.data(), 0.1};
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

// The kernel counts in packs before, with and behind the label; a few large numbers decide.
TYPED_TEST(LossKernels, RanksLabelsAmongManyOutputs) {
  for (const std::size_t outputs : {std::size_t{300}, std::size_t{3000}}) {
    for (const std::size_t label : {std::size_t{3}, std::size_t{100}, outputs - 1}) {
      for (std::size_t n_before = 0; n_before < 7; ++n_before) {
        this->fill(1, outputs);
        for (std::size_t c = 0; c < outputs; ++c) this->x[c] = round_to<TypeParam>(c % 3 == 0 ? -2.0F : 0.0F);
        this->x[label] = round_to<TypeParam>(1);
        // Each ranks first if it is before the label, or larger.
        for (std::size_t i = 0; i < n_before; ++i) {
          const std::size_t c = (label + 1 + i * (outputs / 7)) % outputs;
          this->x[c] = round_to<TypeParam>(c < label ? 1 : 1.5F);
        }
        for (const std::size_t more : {std::size_t{2}, std::size_t{11}})
          if (label + more < outputs) this->x[label + more] = round_to<TypeParam>(1);  // does not rank first
        this->labels[0] = static_cast<std::int64_t>(label);
        Runner{}(SoftmaxCrossEntropy<TypeParam>{this->rows(), this->labels.data(), 0});
        EXPECT_EQ(this->losses[0].is_top1, n_before == 0 ? 1U : 0U) << outputs << ' ' << label << ' ' << n_before;
        EXPECT_EQ(this->losses[0].is_top5, n_before < 5 ? 1U : 0U) << outputs << ' ' << label << ' ' << n_before;
      }
    }
  }
}

TYPED_TEST(LossKernels, TellsOfLabelsThatAreNoClass) {
  for (const std::size_t outputs : {10, 2000}) {
    this->fill(3, outputs);
    this->labels = {3, static_cast<std::int64_t>(outputs), -1};
    Runner{}(SoftmaxCrossEntropy<TypeParam>{this->rows(), this->labels.data(), 0.1});
    EXPECT_EQ(*this->has_bad_label, 1U);
    EXPECT_GT(this->losses[0].loss, 0);
    EXPECT_EQ(this->losses[1].loss, 0);
    for (std::size_t i = this->row_elements; i < this->gradient.size(); ++i) EXPECT_EQ(number(this->gradient[i]), 0);
    *this->has_bad_label = 0;
    Runner{}(NegativeLog<TypeParam>{this->rows(), this->labels.data()});
    EXPECT_EQ(*this->has_bad_label, 1U);
    EXPECT_EQ(this->losses[2].loss, 0);
    *this->has_bad_label = 0;
  }
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

TYPED_TEST(LossKernels, ScaleGradientsByTheShareOfARow) {
  this->fill(3, 20);
  LossRows<TypeParam> rows = this->rows();
  const auto gradient_of = [&](const auto& body) {
    Runner{}(body);
    return this->gradient;
  };
  const Vector<float> targets(3 * 20, 0.5F);
  const auto all = [&] {
    return std::vector{gradient_of(SoftmaxCrossEntropy<TypeParam>{rows, this->labels.data(), 0.1}),
                       gradient_of(NegativeLog<TypeParam>{rows, this->labels.data()}),
                       gradient_of(MeanSquare<TypeParam>{rows, targets.data()})};
  };
  const auto whole = all();
  rows.share = 0.25F;
  const auto quarter = all();
  for (std::size_t of = 0; of < whole.size(); ++of)
    for (std::size_t i = 0; i < whole[of].size(); ++i)
      ASSERT_NEAR(number(quarter[of][i]), number(whole[of][i]) / 4, 1e-7) << of << ' ' << i;
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

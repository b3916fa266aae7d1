// The loops of softmax beside sums in double, within the errors that their header states, and the loss that uses them.
#include "nn/host/softmax_loops.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/rng.hpp"
#include "unit/nn_host/harness.hpp"

namespace lockstep::nn::host {
namespace {

constexpr double u = 0x1p-24;
constexpr float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();

std::span<const SoftmaxLoops* const> softmax_sets() { return core::available_loops<SoftmaxLoops>(); }

/// Numbers of [middle - width, middle + width).
std::vector<float> row_of(std::size_t n, double middle, double width) {
  core::Random random{n};
  std::vector<float> x(n);
  for (float& value : x) value = static_cast<float>(middle + width * (2 * random.uniform() - 1));
  return x;
}

/// What all loops give for a row, as bytes.
std::vector<unsigned char> results_of(const SoftmaxLoops& loops, const std::vector<float>& x) {
  const std::size_t n = x.size();
  const auto [max, total] = loops.max_and_total(x.data(), n);
  std::vector<float> terms(n + 1, 7), probabilities(n + 1, 7);
  const double sum = loops.exponentials(x.data(), max, n, terms.data());
  EXPECT_EQ(loops.exponentials(x.data(), max, n, nullptr), sum);
  loops.scale_and_subtract(terms.data(), static_cast<float>(1 / sum), 0.125F, probabilities.data(), n);
  EXPECT_EQ(terms[n], 7);
  EXPECT_EQ(probabilities[n], 7);
  std::vector<unsigned char> bytes(3 * sizeof(double) + 2 * (n + 1) * sizeof(float));
  const double numbers[]{static_cast<double>(max), total, sum};
  std::memcpy(bytes.data(), numbers, sizeof numbers);
  std::memcpy(bytes.data() + sizeof numbers, terms.data(), (n + 1) * sizeof(float));
  std::memcpy(bytes.data() + sizeof numbers + (n + 1) * sizeof(float), probabilities.data(), (n + 1) * sizeof(float));
  return bytes;
}

/// Expects what softmax_loops.hpp states of a row of finite numbers.
void expect_within_bounds(const SoftmaxLoops& loops, const std::vector<float>& x) {
  const std::size_t n = x.size();
  const auto [max, total] = loops.max_and_total(x.data(), n);
  std::vector<float> terms(n);
  const double sum = loops.exponentials(x.data(), max, n, terms.data());
  const auto largest = static_cast<double>(*std::max_element(x.begin(), x.end()));
  double right_total = 0, right_sum = 0, magnitude = 0;
  for (const float value : x) {
    right_total += static_cast<double>(value);
    magnitude += std::abs(static_cast<double>(value));
    right_sum += std::exp(static_cast<double>(value) - largest);
  }
  ASSERT_EQ(static_cast<double>(max), largest);
  ASSERT_NEAR(total, right_total, 1e-13 * magnitude);
  const double log_n = std::log(static_cast<double>(n));
  ASSERT_NEAR(std::log(sum), std::log(right_sum), (2 + log_n) * u);
  loops.scale_and_subtract(terms.data(), static_cast<float>(1 / sum), 0, terms.data(), n);
  for (std::size_t i = 0; i < n; ++i)
    ASSERT_NEAR(static_cast<double>(terms[i]), std::exp(static_cast<double>(x[i]) - largest) / right_sum,
                (5 + log_n) * u);
}

TEST(SoftmaxLoops, ExponentialsAreThoseOfDoubleToTheLastPlaces) {
  std::vector<float> x;
  for (std::uint32_t bits = 0; bits < 0x42ae'8000; bits += 1009) x.push_back(-std::bit_cast<float>(bits));  // to -87.25
  std::vector<float> found(x.size());
  for (const SoftmaxLoops* loops : softmax_sets()) {
    loops->exponentials(x.data(), 0, x.size(), found.data());
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double right = std::exp(static_cast<double>(x[i]));
      worst = std::max(worst, std::abs(static_cast<double>(found[i]) - right) / right);
    }
    EXPECT_LE(worst, 2 * u);
    EXPECT_GT(worst, u / 2) << "float32 cannot do better";
    std::vector<float> ends{0, -87.34F, -104, -1e30F, -infinity};
    EXPECT_EQ(loops->exponentials(ends.data(), 0, ends.size(), ends.data()), 1);
    EXPECT_EQ(ends, (std::vector<float>{1, 0, 0, 0, 0}));
  }
}

TEST(SoftmaxLoops, AreWithinTheirBoundsAndTheSameBitsInAllSets) {
  std::vector<std::size_t> sizes{1000, 50257};
  for (std::size_t n = 1; n <= 70; ++n) sizes.push_back(n);
  for (const std::size_t n : sizes) {
    for (const auto& [middle, width] : {std::pair{0.0, 0.01}, {0.0, 3.0}, {-500.0, 60.0}, {1e5, 1e3}, {0.0, 3e38}}) {
      SCOPED_TRACE(testing::Message() << n << " numbers around " << middle << " +- " << width);
      const auto x = row_of(n, middle, width);
      for (const SoftmaxLoops* loops : softmax_sets()) {
        expect_within_bounds(*loops, x);
        ASSERT_TRUE(results_of(*loops, x) == results_of(*softmax_sets()[0], x));
      }
    }
  }
}

TEST(SoftmaxLoops, LetNaNAndInfinityThrough) {
  for (const std::size_t n : {3u, 16u, 40u}) {
    for (const std::size_t at : {std::size_t{0}, std::size_t{2}, n - 1}) {
      for (const SoftmaxLoops* loops : softmax_sets()) {
        auto x = row_of(n, 0, 3);
        std::vector<float> terms(n);
        const auto sum_with = [&](float value) {
          x[at] = value;
          return loops->exponentials(x.data(), loops->max_and_total(x.data(), n).max, n, terms.data());
        };
        EXPECT_TRUE(std::isnan(sum_with(nan)));
        EXPECT_TRUE(std::isnan(sum_with(infinity)));
        EXPECT_TRUE(std::isfinite(sum_with(-infinity)));
        EXPECT_EQ(terms[at], 0);
        EXPECT_EQ(loops->max_and_total(x.data(), n).total, -static_cast<double>(infinity));
        std::fill(x.begin(), x.end(), -infinity);
        EXPECT_TRUE(std::isnan(sum_with(-infinity)));
      }
    }
  }
}

TEST(SoftmaxLoops, CountWhatRanksBeforeALabel) {
  for (std::size_t n = 1; n <= 70; ++n) {
    core::Random random{n};
    std::vector<float> x(n);
    for (float& value : x) value = random.below(9) == 0 ? nan : static_cast<float>(random.below(8)) - 4;
    for (std::size_t label = 0; label < n; ++label) {
      std::size_t n_before = 0;
      for (std::size_t c = 0; c < n; ++c)
        n_before += c != label && !(x[c] < x[label] || (x[c] == x[label] && c > label)) ? 1 : 0;
      for (const SoftmaxLoops* loops : softmax_sets()) ASSERT_EQ(loops->n_before(x.data(), n, label), n_before) << n;
    }
  }
}

/// A network whose outputs for its one sample are the numbers of its bias.
Case case_of(std::size_t n_classes, double smoothing) {
  Network net;
  net.linear("fc", net.input({1}), {.n_out = n_classes});
  Case given = make_case(net, 1, Loss::cross_entropy);
  given.options.label_smoothing = smoothing;
  return given;
}

void set_logits(Harness& harness, const std::vector<float>& logits) {
  harness.executor.pack(0, harness.rows(0), std::vector<float>(logits.size()),
                        harness.slot(harness.parameters.elements(), 0));
  harness.executor.pack(1, harness.rows(1), logits, harness.slot(harness.parameters.elements(), 1));
}

TEST(HostLoss, IsThatOfDoubleWithinTheBoundsOfItsLoops) {
  for (const std::size_t n : {1u, 2u, 10u, 17u, 1000u, 50257u}) {
    for (const double smoothing : {0.0, 0.1}) {
      for (const double width : {3.0, 1e5}) {
        SCOPED_TRACE(testing::Message() << n << " classes, " << width << ", smoothing " << smoothing);
        Harness harness{case_of(n, smoothing)};
        const auto logits = row_of(n, 0, width);
        set_logits(harness, logits);
        const auto label = static_cast<std::size_t>(harness.samples.classes[0]);
        double sum = 0, total = 0;
        const auto max = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
        for (const float logit : logits) {
          sum += std::exp(static_cast<double>(logit) - max);
          total += static_cast<double>(logit);
        }
        const auto n_classes = static_cast<double>(n);
        const double log_sum = max + std::log(sum), log_n = std::log(n_classes);
        EXPECT_NEAR(harness.forward().loss,
                    (1 - smoothing) * (log_sum - static_cast<double>(logits[label])) +
                        smoothing * (log_sum - total / n_classes),
                    (2 + log_n) * u + 1e-14 * width);
        harness.backward();
        const std::vector<float> gradient = harness.gradient(1);
        for (std::size_t c = 0; c < n; ++c) {
          const double target = (c == label ? 1 - smoothing : 0) + smoothing / n_classes;
          ASSERT_NEAR(static_cast<double>(gradient[c]), std::exp(static_cast<double>(logits[c]) - log_sum) - target,
                      (6 + log_n) * u)
              << c;
        }
      }
    }
  }
}

// What float32 would round to 0: the probability differs from 1 by less than its last place.
TEST(HostLoss, KeepsTheGradientOfALabelThatIsNearlyCertain) {
  Harness harness{case_of(3, 0)};
  harness.samples.classes[0] = 1;
  set_logits(harness, {-10, 10, -12});
  const double others = std::exp(-20.0) + std::exp(-22.0), right = others / (1 + others);
  EXPECT_NEAR(harness.forward().loss / std::log1p(others), 1, 1e-6);
  harness.backward();
  EXPECT_NEAR(static_cast<double>(harness.gradient(1)[1]) / -right, 1, 1e-6);
}

TEST(HostLoss, OfLogitsThatAreNotFiniteIsNaN) {
  for (const float value : {nan, infinity, -infinity}) {
    Harness harness{case_of(20, 0)};
    harness.samples.classes[0] = 4;
    std::vector<float> logits = row_of(20, 0, 1);
    logits[17] = value;
    set_logits(harness, logits);
    EXPECT_TRUE(std::isnan(harness.forward().loss)) << value;
  }
}

}  // namespace
}  // namespace lockstep::nn::host

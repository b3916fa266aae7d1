#include "data/synth/synth.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "core/rng.hpp"
#include "unit/data/importers/fixture.hpp"

namespace lockstep::data {
namespace {

std::vector<std::byte> part(const std::vector<std::byte>& bytes, std::uint64_t first, std::uint64_t n) {
  return {bytes.begin() + static_cast<std::ptrdiff_t>(first), bytes.begin() + static_cast<std::ptrdiff_t>(first + n)};
}

class EverySynth : public testing::TestWithParam<Synthesizer> {};

TEST_P(EverySynth, AnyRangeInAnyOrderGivesTheSameBytes) {
  const SynthOptions options{.samples = 60, .height = 9, .width = 7};
  const std::unique_ptr<Source> source = GetParam().open(options), other = GetParam().open(options);
  const std::uint64_t x_bytes = source->spec().x.bytes(), y_bytes = source->spec().y.bytes();
  for (std::size_t split = 0; split < source->splits().size(); ++split) {
    const std::uint64_t n = source->splits()[split].n_samples;
    const Samples all = read(*source, split, 0, n);
    for (std::uint64_t i = n; i-- > 0;) {
      const std::uint64_t length = std::min<std::uint64_t>(1 + i % 3, n - i);
      const Samples some = read(*other, split, i, length);
      ASSERT_EQ(some.x, part(all.x, i * x_bytes, length * x_bytes)) << i;
      ASSERT_EQ(some.y, part(all.y, i * y_bytes, length * y_bytes)) << i;
    }
  }
}

TEST_P(EverySynth, SamplesSplitsAndSeedsDiffer) {
  const std::unique_ptr<Source> source = GetParam().open({.samples = 40}),
                                other = GetParam().open({.samples = 40, .seed = 2});
  std::set<std::string> distinct;
  std::uint64_t n_samples = 0;
  for (Source* one : {source.get(), other.get()}) {
    for (std::size_t split = 0; split < one->splits().size(); ++split) {
      for (std::uint64_t i = 0; i < one->splits()[split].n_samples; ++i, ++n_samples) {
        const Samples sample = read(*one, split, i, 1);
        const std::string both = bytes(sample.x) + bytes(sample.y);
        distinct.insert(both);
      }
    }
  }
  EXPECT_EQ(distinct.size(), n_samples);
}

TEST_P(EverySynth, FewerSamplesAreTheFirstOfMore) {
  const std::unique_ptr<Source> few = GetParam().open({.samples = 5}), many = GetParam().open({.samples = 50});
  EXPECT_EQ(read(*few, 0, 0, 5).x, read(*many, 0, 0, 5).x);
}

INSTANTIATE_TEST_SUITE_P(Kinds, EverySynth, testing::ValuesIn(synthesizers),
                         [](const auto& tested) { return std::string{tested.param.name}; });

void expect_splits(const Source& source, const std::vector<std::pair<std::string, std::uint64_t>>& expected) {
  const std::vector<SourceSplit> splits = source.splits();
  ASSERT_EQ(splits.size(), expected.size());
  for (std::size_t i = 0; i < splits.size(); ++i) {
    EXPECT_EQ(splits[i].name, expected[i].first);
    EXPECT_EQ(splits[i].n_samples, expected[i].second);
  }
}

TEST(Synth, SplitsAreAsLargeAsPromised) {
  expect_splits(*synth_toy({}), {{"train", 2048}});
  expect_splits(*synth_digits({}), {{"train", 60'000}, {"val", 10'000}});
  expect_splits(*synth_digits({.samples = 3}), {{"train", 3}, {"val", 1}});
  expect_splits(*synth_images({.samples = 500}), {{"train", 500}, {"val", 50}});
  expect_splits(*synth_ratings({}), {{"train", 100'836}});
}

TEST(Synth, ToyIsUniform) {
  const std::unique_ptr<Source> toy = synth_toy({});
  EXPECT_EQ(toy->spec().x, (ArraySpec{core::DType::float32, {20}}));
  EXPECT_EQ(toy->spec().y, (ArraySpec{core::DType::float32, {1}}));
  const std::vector<float> x = values<float>(read(*toy, 0, 0, 2048).x);
  EXPECT_NEAR(std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size()), 0.5, 5 * 0.2887 / 202);
  EXPECT_GE(*std::min_element(x.begin(), x.end()), 0.0F);
  EXPECT_LT(*std::max_element(x.begin(), x.end()), 1.0F);
}

TEST(Synth, ImagesOfOneClassLookAlike) {
  const std::unique_ptr<Source> images =
      synth_images({.samples = 400, .height = 16, .width = 24, .channels = 2, .classes = 300});
  EXPECT_EQ(images->spec().x, (ArraySpec{core::DType::uint8, {16, 24, 2}}));
  EXPECT_EQ(images->spec().y, (ArraySpec{core::DType::uint16, {}}));
  EXPECT_EQ(images->spec().classes.size(), 300u);
  const std::vector<std::uint16_t> labels = values<std::uint16_t>(read(*images, 0, 0, 400).y);
  EXPECT_GT(std::set<std::uint16_t>(labels.begin(), labels.end()).size(), 150u);
  EXPECT_LT(*std::max_element(labels.begin(), labels.end()), 300);
}

// Spread over pixels of one channel: noise alone has a standard deviation of 18 levels.
TEST(Synth, ImagesHaveATextureBeyondTheirNoise) {
  const std::unique_ptr<Source> images = synth_images({.samples = 20});
  const Samples samples = read(*images, 0, 0, 20);
  double squares = 0, sum = 0;
  for (const std::byte pixel : samples.x) {
    sum += std::to_integer<int>(pixel);
    squares += std::pow(std::to_integer<int>(pixel), 2);
  }
  const double n = static_cast<double>(samples.x.size()), mean = sum / n;
  EXPECT_NEAR(mean, 127.5, 3);
  EXPECT_GT(std::sqrt(squares / n - mean * mean), 22);
}

TEST(Synth, RatingsAreHalvesOfKnownUsersAndPopularItems) {
  const std::unique_ptr<Source> ratings = synth_ratings({.samples = 20'000, .users = 50, .items = 1000});
  const Samples samples = read(*ratings, 0, 0, 20'000);
  const std::vector<std::int32_t> ids = values<std::int32_t>(samples.x);
  const std::vector<float> rated = values<float>(samples.y);
  std::map<std::int32_t, int> n_of_item;
  double squares_within = 0, squares = 0, mean = std::accumulate(rated.begin(), rated.end(), 0.0) / 20'000;
  std::map<std::pair<std::int32_t, std::int32_t>, std::pair<double, int>> pairs;
  for (std::size_t i = 0; i < rated.size(); ++i) {
    ASSERT_TRUE(ids[2 * i] >= 0 && ids[2 * i] < 50 && ids[2 * i + 1] >= 0 && ids[2 * i + 1] < 1000);
    ASSERT_TRUE(rated[i] >= 0.5F && rated[i] <= 5.0F && std::round(2 * rated[i]) == 2 * rated[i]);
    ++n_of_item[ids[2 * i + 1]];
    auto& [sum, n] = pairs[{ids[2 * i], ids[2 * i + 1]}];
    sum += rated[i];
    ++n;
  }
  for (std::size_t i = 0; i < rated.size(); ++i) {
    const auto [sum, n] = pairs[{ids[2 * i], ids[2 * i + 1]}];
    if (n < 10) continue;
    squares_within += std::pow(rated[i] - sum / n, 2);
    squares += std::pow(rated[i] - mean, 2);
  }
  EXPECT_NEAR(mean, 3.5, 0.4);
  EXPECT_GT(n_of_item[0], 40 * n_of_item[900]);  // the cube root of 1/1000 is 1/10: 2000 of 20000
  EXPECT_LT(squares_within, 0.5 * squares);      // who rates what says more than chance
}

TEST(Synth, ImpossibleOptionsAreRefused) {
  expect_usage([] { synth_images({.height = 0}); }, {"--height", "1 to 65536"});
  expect_usage([] { synth_images({.classes = 0}); }, {"--classes"});
  expect_usage([] { synth_images({.classes = 70'000}); }, {"--classes", "70000"});
  expect_usage([] { synth_ratings({.users = 0}); }, {"--users"});
  expect_usage([] { synth_ratings({.items = std::uint64_t{1} << 31}); }, {"--items", "2147483647"});
}

/// Softmax regression by stochastic gradient descent: what a linear classifier can do.
class LinearClassifier {
 public:
  void train(const std::vector<float>& x, const std::vector<std::byte>& y, std::vector<std::size_t>& order,
             float rate) {
    for (const std::size_t i : order) {
      std::array<float, 10> scores = score(&x[i * n_inputs]);
      const float most = *std::max_element(scores.begin(), scores.end());
      float sum = 0;
      for (float& value : scores) sum += value = std::exp(value - most);
      for (std::size_t d = 0; d < 10; ++d) {
        const float step = rate * (scores[d] / sum - (d == std::to_integer<std::size_t>(y[i]) ? 1.0F : 0.0F));
        for (std::size_t k = 0; k < n_inputs; ++k) weights_[d][k] -= step * x[i * n_inputs + k];
      }
    }
  }

  double accuracy(const std::vector<float>& x, const std::vector<std::byte>& y) const {
    std::size_t n_right = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
      const std::array<float, 10> scores = score(&x[i * n_inputs]);
      const auto best = std::max_element(scores.begin(), scores.end()) - scores.begin();
      n_right += static_cast<std::byte>(best) == y[i] ? 1 : 0;
    }
    return static_cast<double>(n_right) / static_cast<double>(y.size());
  }

  static constexpr std::size_t n_inputs = 28 * 28 + 1;  // the last is 1

 private:
  // Eight partial sums, so that the loop is vectorized without reordering.
  std::array<float, 10> score(const float* x) const {
    std::array<float, 10> scores{};
    for (std::size_t d = 0; d < 10; ++d) {
      std::array<float, 8> sums{};
      for (std::size_t k = 0; k + 8 <= n_inputs; k += 8) {
        for (std::size_t j = 0; j < 8; ++j) sums[j] += weights_[d][k + j] * x[k + j];
      }
      scores[d] = std::accumulate(sums.begin(), sums.end(), weights_[d][n_inputs - 1] * x[n_inputs - 1]);
    }
    return scores;
  }

  std::array<std::array<float, n_inputs>, 10> weights_{};
};

std::vector<float> inputs_of(const std::vector<std::byte>& pixels) {
  std::vector<float> inputs;
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    inputs.push_back(static_cast<float>(pixels[i]) / 255);
    if (i % 784 == 783) inputs.push_back(1);
  }
  return inputs;
}

TEST(Synth, DigitsAreTooVariedForALinearClassifier) {
  const std::unique_ptr<Source> digits = synth_digits({.samples = 12'000});
  const Samples train = read(*digits, 0, 0, 6000), test = read(*digits, 1, 0, 2000);
  const std::vector<float> x = inputs_of(train.x), x_test = inputs_of(test.x);
  std::vector<std::size_t> order(6000);
  std::iota(order.begin(), order.end(), 0);
  LinearClassifier classifier;
  core::Random random{1};
  double best = 0;
  for (int epoch = 0; epoch < 8; ++epoch) {
    core::shuffle(order, random);
    classifier.train(x, train.y, order, 0.02F / static_cast<float>(epoch + 1));
    best = std::max(best, classifier.accuracy(x_test, test.y));
  }
  EXPECT_GT(best, 0.40);  // there is something to learn
  EXPECT_LT(best, 0.92);
}

TEST(Synth, DigitsHaveInkOfEveryClass) {
  const std::unique_ptr<Source> digits = synth_digits({.samples = 2000});
  EXPECT_EQ(digits->spec().x, (ArraySpec{core::DType::uint8, {28, 28}}));
  EXPECT_EQ(digits->spec().y, (ArraySpec{core::DType::uint8, {}}));
  const Samples samples = read(*digits, 0, 0, 2000);
  std::array<int, 10> n_of_class{};
  for (std::size_t i = 0; i < 2000; ++i) {
    ++n_of_class.at(std::to_integer<std::size_t>(samples.y[i]));
    const auto* begin = samples.x.data() + i * 784;
    std::vector<std::byte> sorted(begin, begin + 784);
    std::sort(sorted.begin(), sorted.end());
    const int paper = std::to_integer<int>(sorted[392]), ink = std::to_integer<int>(sorted[774]);
    EXPECT_GT(ink, paper + 20) << i;  // of 784 pixels, more than ten stand out
  }
  for (const int n : n_of_class) EXPECT_NEAR(n, 200, 5 * 13.4);  // sqrt(2000 * 0.1 * 0.9)
}

}  // namespace
}  // namespace lockstep::data

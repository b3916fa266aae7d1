#include "nn/graph/initialize.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "core/error.hpp"
#include "nn/graph/models.hpp"

namespace lockstep::nn {
namespace {

std::vector<float> initialized(const Parameter& parameter, std::uint64_t seed = 1) {
  std::vector<float> values(n_elements(parameter.shape), 77.0f);
  initialize(parameter, seed, values);
  return values;
}

Parameter parameter_of(Init init, std::uint64_t n, std::uint64_t fan, const std::string& name = "fc.weight") {
  return {name, {n}, init, fan};
}

struct Moments {
  double mean = 0, variance = 0, kurtosis = 0;
};

Moments moments_of(const std::vector<float>& values) {
  Moments moments;
  const double n = static_cast<double>(values.size());
  for (const double value : values) moments.mean += value / n;
  for (const double value : values) moments.variance += std::pow(value - moments.mean, 2) / n;
  for (const double value : values) moments.kurtosis += std::pow(value - moments.mean, 4) / n;
  moments.kurtosis /= moments.variance * moments.variance;
  return moments;
}

constexpr std::uint64_t n_many = 400'000;

TEST(Initialize, ZerosAndOnes) {
  EXPECT_EQ(initialized(parameter_of(Init::zeros, 5, 1)), std::vector<float>(5, 0));
  EXPECT_EQ(initialized(parameter_of(Init::ones, 5, 1)), std::vector<float>(5, 1));
}

// A uniform distribution in +-b has variance b^2 / 3 and kurtosis 9 / 5. Tolerances are 5 standard errors.
TEST(Initialize, UniformFanInIsPyTorchsKaimingUniformOfSquareRootFive) {
  const auto values = initialized(parameter_of(Init::uniform_fan_in, n_many, 25));
  const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
  EXPECT_GE(*least, -0.2f);
  EXPECT_LT(*least, -0.1999f);
  EXPECT_LT(*greatest, 0.2f);
  EXPECT_GT(*greatest, 0.1999f);
  const Moments moments = moments_of(values);
  const double variance = 0.04 / 3, n = n_many;
  EXPECT_NEAR(moments.mean, 0, 5 * std::sqrt(variance / n));
  EXPECT_NEAR(moments.variance, variance, 5 * variance * std::sqrt(0.8 / n));
  EXPECT_NEAR(moments.kurtosis, 1.8, 0.01);
}

// A normal distribution has kurtosis 3.
TEST(Initialize, NormalsHaveTheirVariance) {
  for (const auto& [init, fan, variance] :
       {std::tuple{Init::normal, 9, 1.0}, std::tuple{Init::kaiming_normal_fan_out, 50, 0.04}}) {
    const Moments moments = moments_of(initialized(parameter_of(init, n_many, static_cast<std::uint64_t>(fan))));
    const double n = n_many;
    EXPECT_NEAR(moments.mean, 0, 5 * std::sqrt(variance / n));
    EXPECT_NEAR(moments.variance, variance, 5 * variance * std::sqrt(2 / n));
    EXPECT_NEAR(moments.kurtosis, 3, 5 * std::sqrt(24 / n));
  }
}

// The share of a standard normal distribution below -3 ... 3, in millionths.
TEST(Initialize, NormalIsNormalInEachPart) {
  const auto values = initialized(parameter_of(Init::normal, n_many, 1));
  for (const double bound : {-3.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0}) {
    const double share = 0.5 * std::erfc(-bound / std::sqrt(2.0));
    const auto n_below = std::count_if(values.begin(), values.end(), [&](float value) { return value < bound; });
    EXPECT_NEAR(static_cast<double>(n_below) / n_many, share, 5 * std::sqrt(share * (1 - share) / n_many)) << bound;
  }
}

TEST(Initialize, NeighboursAreNotCorrelated) {
  for (const Init init : {Init::normal, Init::uniform_fan_in}) {
    const auto values = initialized(parameter_of(init, n_many, 1));
    const double variance = moments_of(values).variance;
    for (const std::size_t distance : {1u, 2u, 3u, 4u}) {
      double product = 0;
      for (std::size_t i = distance; i < values.size(); ++i) product += values[i] * values[i - distance];
      EXPECT_NEAR(product / n_many / variance, 0, 5 / std::sqrt(n_many)) << distance;
    }
  }
}

// An element depends only on its own place: a longer parameter begins with the shorter one.
TEST(Initialize, ElementsDependOnSeedNameAndPlaceOnly) {
  for (const Init init : {Init::normal, Init::uniform_fan_in}) {
    const auto values = initialized(parameter_of(init, 103, 10));
    auto longer = initialized(parameter_of(init, 1001, 10));
    longer.resize(values.size());
    EXPECT_EQ(longer, values);
    EXPECT_EQ(initialized(parameter_of(init, 103, 10)), values);
    EXPECT_NE(initialized(parameter_of(init, 103, 10), 2), values);
    EXPECT_NE(initialized(parameter_of(init, 103, 10), std::uint64_t{1} << 32 | 1), values);
    EXPECT_NE(initialized(parameter_of(init, 103, 10, "fc.bias")), values);
  }
}

// A change of these changes the first weights of every run. Normal ones depend on the C library's sine and logarithm.
TEST(Initialize, ValuesStayWhatTheyAre) {
  EXPECT_EQ(initialized(parameter_of(Init::uniform_fan_in, 6, 16)),
            (std::vector<float>{0x1.993068p-4f, 0x1.70e4ep-3f, 0x1.827p-6f, 0x1.a1acc8p-4f, 0x1.27af08p-4f,
                                -0x1.6f6fbcp-3f}));
  const std::vector<float> normal = initialized(parameter_of(Init::normal, 6, 16));
  const std::vector<float> expected{0.539599478f, -0.650196433f, -0.313377857f,
                                    -1.05250955f, 0.592246592f,  0.726764858f};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_FLOAT_EQ(normal[i], expected[i]) << i;
}

TEST(Initialize, PartsHaveTheBitsOfTheWhole) {
  for (const Init init : {Init::zeros, Init::ones, Init::uniform_fan_in, Init::kaiming_normal_fan_out, Init::normal}) {
    const Parameter parameter = parameter_of(init, 23, 10);
    const std::vector<float> whole = initialized(parameter);
    for (std::size_t first = 0; first <= whole.size(); ++first)
      for (std::size_t end = first; end <= whole.size(); ++end) {
        std::vector<float> part(end - first, 77.0f);
        initialize_part(parameter, 1, first, part);
        EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(first)))
            << first << " to " << end;
      }
  }
}

TEST(Initialize, RefusesWhatIsNotTheWholeOrWithinIt) {
  std::vector<float> values(4);
  EXPECT_THROW(initialize(parameter_of(Init::normal, 5, 1), 1, values), core::Error);
  EXPECT_THROW(initialize_part(parameter_of(Init::normal, 5, 1), 1, 2, values), core::Error);
}

TEST(Initialize, ResNetBeginsAsTorchvisions) {
  const Network net = make_model({.name = "resnet18", .input = {3, 32, 32}, .n_outputs = 10});
  const auto variance_of = [&](const std::string& name) {
    for (const Parameter& parameter : net.parameters())
      if (parameter.name == name) return moments_of(initialized(parameter)).variance;
    ADD_FAILURE() << name;
    return 0.0;
  };
  EXPECT_NEAR(variance_of("conv1.weight") * 64 * 49 / 2, 1, 0.1);
  EXPECT_NEAR(variance_of("layer4.1.conv2.weight") * 512 * 9 / 2, 1, 0.01);
  EXPECT_NEAR(variance_of("fc.weight") * 512 * 3, 1, 0.1);
}

}  // namespace
}  // namespace lockstep::nn

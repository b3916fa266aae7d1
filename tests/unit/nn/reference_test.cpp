#include "unit/nn/reference.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <ostream>

#include "unit/nn/cases.hpp"

namespace lockstep::nn {

// For GoogleTest's messages.
std::ostream& operator<<(std::ostream& stream, const Case& c) { return stream << c.name; }

namespace {

using Values = std::vector<double>;
using Golden = std::map<std::string, Values>;

std::string case_name(const testing::TestParamInfo<Case>& info) { return info.param.name; }

Reference with_parameters(const Case& c) {
  Reference reference{c.network};
  for (std::size_t i = 0; i < c.network.parameters().size(); ++i)
    reference.parameter(i) = parameter_values(c.network, i);
  return reference;
}

void expect_equal(const Values& actual, const Values& expected, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double greatest = 0;
  for (const double value : expected) greatest = std::max(greatest, std::abs(value));
  for (std::size_t i = 0; i < actual.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i], 1e-12 + 1e-9 * greatest) << what << ", element " << i;
}

/// Everything that make_golden.py writes about a case, with the same labels.
Golden results_of(const Case& c, const std::function<Values(const Values&)>& shown) {
  Golden results;
  Reference reference = with_parameters(c);
  const LossSums sums = reference.forward(c.batch, c.options);
  reference.backward(1 / static_cast<double>(c.batch.n));
  const std::size_t last = c.network.nodes().size() - 1;
  results["loss"] = {sums.loss};
  results["output"] = reference.value(last);
  if (c.options.loss != Loss::mse) results["top1"] = {static_cast<double>(sums.n_top1)};
  if (c.batch.ids.empty()) results["input_gradient"] = shown(reference.value_gradient(0));
  for (std::size_t i = 0; i < c.network.parameters().size(); ++i)
    results["gradient:" + c.network.parameters()[i].name] = shown(reference.gradient(i));
  for (std::size_t i = 0; i < c.network.statistics().size(); ++i)
    results["statistic:" + c.network.statistics()[i].name] = shown(reference.statistic(i));
  ReferenceOptions evaluation = c.options;
  evaluation.is_training = false;
  reference.forward(c.batch, evaluation);
  results["evaluated"] = reference.value(last);
  return results;
}

void expect_golden(const Case& c, const std::string& file, const std::function<Values(const Values&)>& shown) {
  const Golden golden = read_golden(file);
  const Golden results = results_of(c, shown);
  for (const auto& [label, values] : results) {
    const auto expected = golden.find(c.name + " " + label);
    ASSERT_NE(expected, golden.end()) << label;
    expect_equal(values, expected->second, label);
  }
  const auto is_of_case = [&](const auto& entry) { return entry.first.starts_with(c.name + " "); };
  EXPECT_EQ(std::count_if(golden.begin(), golden.end(), is_of_case), static_cast<std::ptrdiff_t>(results.size()));
}

class ReferenceLayer : public testing::TestWithParam<Case> {};
class ReferenceModel : public testing::TestWithParam<Case> {};

TEST_P(ReferenceLayer, EqualsPyTorch) {
  expect_golden(GetParam(), "layers.txt", [](const Values& values) { return values; });
}

TEST_P(ReferenceModel, EqualsPyTorch) { expect_golden(GetParam(), "models.txt", digest_of); }

/// The numerical derivative of the loss as a function of one number.
double slope(double& number, const std::function<double()>& loss) {
  constexpr double step = 1e-5;
  const double before = number;
  number = before + step;
  const double above = loss();
  number = before - step;
  const double below = loss();
  number = before;
  return (above - below) / (2 * step);
}

TEST_P(ReferenceLayer, GradientsEqualFiniteDifferences) {
  Case c = GetParam();
  if (c.name == "max_pool_ties") GTEST_SKIP() << "no slope where two elements are the greatest";
  Reference reference = with_parameters(c);
  const auto loss = [&] { return reference.forward(c.batch, c.options).loss; };
  loss();
  reference.backward(static_cast<double>(n_sample_rows(c.network.output())));  // loss() is a sum over rows
  const auto expect_slopes = [&](Values& numbers, const Values& gradient, const std::string& what) {
    ASSERT_EQ(numbers.size(), gradient.size()) << what;
    for (std::size_t i = 0; i < numbers.size(); ++i)
      ASSERT_NEAR(gradient[i], slope(numbers[i], loss), 1e-8) << what << ", element " << i;
  };
  if (!c.batch.x.empty()) expect_slopes(c.batch.x, Values{reference.value_gradient(0)}, "input");
  for (std::size_t i = 0; i < c.network.parameters().size(); ++i)
    expect_slopes(reference.parameter(i), Values{reference.gradient(i)}, c.network.parameters()[i].name);
}

INSTANTIATE_TEST_SUITE_P(All, ReferenceLayer, testing::ValuesIn(layer_cases()), case_name);
INSTANTIATE_TEST_SUITE_P(All, ReferenceModel, testing::ValuesIn(model_cases()), case_name);

TEST(Reference, AnyKindOfLayerIsInACase) {
  std::vector<bool> is_seen(std::variant_size_v<Layer>, false);
  for (const Case& c : layer_cases())
    for (const Node& node : c.network.nodes()) is_seen[node.layer.index()] = true;
  EXPECT_EQ(std::count(is_seen.begin(), is_seen.end(), false), 0);
}

TEST(Reference, CountsTheRightClassAmongTheFirstOneAndFive) {
  Network net;
  net.input({7});
  const double nan = std::nan("");
  ReferenceBatch batch;
  batch.n = 5;
  batch.x = {0, 9, 1, 2, 3, 4, 5,     // class 1 is first
             0, 9, 1, 2, 3, 4, 5,     // class 3 is fifth
             0, 9, 1, 2, 3, 4, 5,     // class 2 is sixth
             3, 3, 3, 3, 3, 3, 3,     // the earlier of equal ones is ahead: class 5 is sixth
             0, 9, 1, 2, 3, 4, nan};  // NaN is never right
  batch.classes = {1, 3, 2, 5, 6};
  const LossSums sums = Reference{net}.forward(batch, {});
  EXPECT_EQ(sums.n, 5u);
  EXPECT_EQ(sums.n_top1, 1u);
  EXPECT_EQ(sums.n_top5, 2u);
}

TEST(Reference, DropoutAsksByNodeSampleAndElement) {
  Network net;
  const Value x = net.input({2});
  net.dropout(net.dropout(x, {.probability = 0.5}), {.probability = 0.5});
  ReferenceOptions options;
  options.loss = Loss::mse;
  options.keeps = [](int node, std::uint64_t sample, std::uint64_t element) {
    return !(node == 1 && sample == 1 && element == 0) && !(node == 2 && sample == 0 && element == 1);
  };
  Reference reference{net};
  reference.forward({.n = 2, .x = {1, 2, 3, 4}, .targets = {0, 0, 0, 0}}, options);
  EXPECT_EQ(reference.value(1), (Values{2, 4, 0, 8}));
  EXPECT_EQ(reference.value(2), (Values{4, 0, 0, 16}));
}

TEST(Reference, NoSamplesGiveNoGradientAndLeaveStatisticsAlone) {
  Network net;
  const Value x = net.batch_norm("bn1", net.input({2, 3, 4}));
  net.linear("fc", net.flatten(x), {.n_out = 2});
  Reference reference{net};
  EXPECT_EQ(reference.forward({}, {}).n, 0u);
  reference.backward(1);
  EXPECT_EQ(reference.gradient(0), Values(2));
  EXPECT_EQ(reference.statistic(1), Values(2, 1.0));
}

}  // namespace
}  // namespace lockstep::nn

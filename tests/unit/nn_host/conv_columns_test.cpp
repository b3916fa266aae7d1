#include <gtest/gtest.h>

#include "unit/nn_host/harness.hpp"

namespace lockstep::nn::host {
namespace {

/// Convolutions that may be computed by columns: 3x3 with strides 1 and 2, and 1x1 with strides 1 and 2.
Case small_maps_case(std::uint64_t n) {
  Network net;
  Value x = net.conv("conv1", net.input({16, 9, 7}), {.n_out = 32, .kernel = 3, .padding = 1, .has_bias = false});
  x = net.conv("conv2", x, {.n_out = 16, .kernel = 3, .stride = 2, .padding = 1, .has_bias = false});
  x = net.conv("conv3", x, {.n_out = 48, .kernel = 1, .has_bias = false});
  x = net.conv("conv4", x, {.n_out = 16, .kernel = 1, .stride = 2, .has_bias = false});
  net.linear("fc", net.flatten(x), {.n_out = 4});
  return make_case(net, n, Loss::cross_entropy);
}

/// Makes every choice by timing `by_columns`.
ExecutorOptions forced(const Case& given, Precision precision, bool by_columns, int& n_choices) {
  ExecutorOptions options = options_of(given, precision);
  options.agree = [by_columns, &n_choices](std::span<double> times) {
    ++n_choices;
    ASSERT_EQ(times.size(), 2u);
    for (const double time : times) EXPECT_GT(time, 0);
    times[0] = by_columns ? 2 : 1;
    times[1] = by_columns ? 1 : 2;
  };
  return options;
}

std::vector<float> expect_gradients(Harness& harness, std::uint64_t begin, std::uint64_t end) {
  const double tolerance = harness.options.precision == Precision::f32 ? 1e-5 : 0.01;
  harness.forward(harness.samples.batch(begin, end));
  harness.backward();
  Harness part{part_of(harness.tested, begin, end), options_of(harness.tested, harness.options.precision)};
  part.reference_forward();
  part.reference.backward(1);
  for (std::size_t i = 0; i < harness.tested.network.parameters().size(); ++i)
    EXPECT_LT(relative_error(harness.gradient(i), part.reference.gradient(i)), tolerance)
        << harness.tested.network.parameters()[i].name;
  return harness.gradient(0);
}

TEST(HostConvColumns, GiveTheSameGradients) {
  if (!has_avx512()) GTEST_SKIP() << "oneDNN has no blocks of 16 channels here";
  for (const Precision precision : precisions()) {
    int n_choices = 0;
    const Case given = small_maps_case(6);
    Harness columns{given, forced(given, precision, true, n_choices)};
    EXPECT_EQ(n_choices, 4);
    Harness own{given, forced(given, precision, false, n_choices)};
    const std::vector<float> whole = expect_gradients(columns, 0, 6);
    expect_gradients(own, 0, 6);
    EXPECT_GT(columns.executor.n_bytes(), own.executor.n_bytes()) << "columns take memory";
    expect_gradients(columns, 1, 5);  // another program, with the same choice
    EXPECT_EQ(n_choices, 8);
    EXPECT_EQ(expect_gradients(columns, 0, 6), whole);
  }
}

TEST(HostConvColumns, AreNoneWhereNothingMayDependOnTimes) {
  int n_choices = 0;
  const Case given = small_maps_case(2);
  ExecutorOptions options = forced(given, Precision::f32, true, n_choices);
  options.is_deterministic = true;
  const HostExecutor executor{given.network, options};
  EXPECT_EQ(n_choices, 0);
}

}  // namespace
}  // namespace lockstep::nn::host

// A hundred steps against PyTorch (optimizers.txt) and against the papers' formulas in float64 (norms.txt).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/flags.hpp"
#include "golden.hpp"
#include "optim/clip.hpp"
#include "optim/optimizer.hpp"

namespace lockstep::optim {
namespace {

OptimizerSpec spec_of(const GoldenCase& golden) {
  OptimizerSpec spec = default_spec(core::find_named(all_optimizer_kinds, golden.settings.at("kind"), "rule", ""));
  spec.weight_decay = golden.number("weight_decay", spec.weight_decay);
  spec.momentum = golden.number("momentum", spec.momentum);
  spec.dampening = golden.number("dampening", spec.dampening);
  spec.nesterov = golden.number("nesterov", 0) != 0;
  spec.beta1 = golden.number("beta1", spec.beta1);
  spec.beta2 = golden.number("beta2", spec.beta2);
  spec.rho = golden.number("rho", spec.rho);
  spec.eps = golden.number("eps", spec.eps);
  spec.trust = golden.number("trust", spec.trust);
  return spec;
}

std::vector<Segment> segments_of(const GoldenCase& golden) {
  std::vector<Segment> segments;
  std::size_t offset = 0;
  for (const std::size_t n : golden_tensors) {
    segments.push_back({.slice = {offset, n}});
    offset += n;
  }
  if (golden.settings.contains("undecayed"))
    segments.at(static_cast<std::size_t>(golden.number("undecayed", 0))).decays = false;
  return segments;
}

/// Steps through a case and calls compare(row, ours) at each of its rows.
template <class Compare>
void replay(const GoldenCase& golden, Compare compare) {
  GoldenInputs inputs = make_golden_inputs();
  const std::vector<Segment> segments = segments_of(golden);
  if (golden.settings.contains("zeros")) {
    const Segment& segment = segments.at(static_cast<std::size_t>(golden.number("zeros", 0)));
    std::fill_n(inputs.parameters.begin() + static_cast<std::ptrdiff_t>(segment.slice.offset), segment.slice.count,
                0.0F);
  }
  Optimizer optimizer{spec_of(golden), segments, n_golden_elements};
  for (std::size_t step = 0; step < n_golden_steps; ++step) {
    const std::span<const float> gradient = inputs.gradients[step];
    float scale = 1;
    if (golden.settings.contains("max_norm")) {
      double squares = 0;
      for (const double square : optimizer.squared_norms(1, {&gradient, 1})) squares += square;
      scale = static_cast<float>(clip_factor(std::sqrt(squares), golden.number("max_norm", 0)));
    }
    optimizer.step(golden_rate(golden.number("lr", 0), step), scale, {&gradient, 1}, inputs.parameters);
    for (const GoldenRow& row : golden.rows)
      if (row.name == "parameters" && row.at == step + 1) compare(row, std::span<const float>(inputs.parameters));
  }
  for (const State& state : optimizer.state())
    for (const GoldenRow& row : golden.rows)
      if (row.name == state.name) compare(row, std::span<const float>(state.values));
}

/// In units in the last place of a row's largest value. A value near 0 with remaining roundings of larger ones may be
/// off by many units of its own.
struct Tolerance {
  double parameters;
  double state;
};

void expect_within(Tolerance tolerance, const GoldenCase& golden) {
  std::size_t n_compared = 0;
  replay(golden, [&](const GoldenRow& row, std::span<const float> ours) {
    ASSERT_EQ(row.values.size(), ours.size());
    double largest = 0;
    for (const double value : row.values) largest = std::max(largest, std::abs(value));
    const double unit = std::ldexp(1, std::ilogb(largest) - 23);
    double worst = 0;
    for (std::size_t i = 0; i < ours.size(); ++i) worst = std::max(worst, std::abs(ours[i] - row.values[i]) / unit);
    EXPECT_LE(std::round(worst), row.name == "parameters" ? tolerance.parameters : tolerance.state)
        << row.name << " after step " << row.at;
    ++n_compared;
  });
  EXPECT_EQ(n_compared, golden.rows.size());
}

void expect_equal(const GoldenCase& golden) {
  std::size_t n_compared = 0;
  replay(golden, [&](const GoldenRow& row, std::span<const float> ours) {
    const std::vector<float> expected(row.values.begin(), row.values.end());
    EXPECT_TRUE(std::ranges::equal(ours, expected)) << row.name << " after step " << row.at;
    ++n_compared;
  });
  EXPECT_EQ(n_compared, golden.rows.size());
}

class Torch : public testing::TestWithParam<GoldenCase> {};
class TorchWithExactRoots : public testing::TestWithParam<GoldenCase> {};
class Papers : public testing::TestWithParam<GoldenCase> {};

// SGD is equal bit for bit. PyTorch's roots are MKL's, which are not correctly rounded, and it sums the norm of
// clipping in float32.
TEST_P(Torch, IsEqualWithinRoundings) {
  const bool is_exact = GetParam().settings.at("kind") == "sgd" && !GetParam().settings.contains("max_norm");
  if (is_exact)
    expect_equal(GetParam());
  else
    expect_within({.parameters = 2, .state = 10}, GetParam());
}

// Our loops fuse, divide and round like PyTorch's, so with the roots of IEEE 754 no difference remains.
TEST_P(TorchWithExactRoots, IsEqualBitForBit) { expect_equal(GetParam()); }

TEST_P(Papers, FormulasInDoubleAgree) { expect_within({.parameters = 5, .state = 7}, GetParam()); }

std::string name_of(const testing::TestParamInfo<GoldenCase>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(All, Torch, testing::ValuesIn(read_golden("optimizers.txt")), name_of);
INSTANTIATE_TEST_SUITE_P(All, TorchWithExactRoots, testing::ValuesIn(read_golden("exact_roots.txt")), name_of);
INSTANTIATE_TEST_SUITE_P(All, Papers, testing::ValuesIn(read_golden("norms.txt")), name_of);

}  // namespace
}  // namespace lockstep::optim

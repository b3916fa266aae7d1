#include "optim/optimizer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>

#include "core/error.hpp"
#include "golden.hpp"

namespace lockstep::optim {
namespace {

constexpr std::size_t n_parameters = 3001;
constexpr std::size_t n_steps = 5;
constexpr double lr = 0.05;

std::vector<float> noise(std::size_t n, std::uint32_t seed) {
  Uniform uniform{seed};
  std::vector<float> values(n);
  std::generate(values.begin(), values.end(), [&] { return uniform.next(); });
  return values;
}

/// Tensors of odd sizes, every third without weight decay.
std::vector<Segment> whole_segments() {
  std::vector<Segment> segments;
  const std::array<std::size_t, 5> sizes{1100, 1, 63, 1500, 337};
  std::size_t offset = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    segments.push_back({.slice = {offset, sizes[i]}, .decays = i % 3 != 1});
    offset += sizes[i];
  }
  return segments;
}

/// One owner's part of the arena: [begin, end), and the tensor of each of its segments.
struct Part {
  Part(const OptimizerSpec& spec, std::size_t from, std::size_t to)
      : begin{from}, end{to}, optimizer{spec, cut(from, to), to - from} {}

  std::size_t begin;
  std::size_t end;
  std::vector<std::size_t> tensors{};
  Optimizer optimizer;

  template <class T>
  std::span<T> of(std::span<T> whole) const {
    return whole.subspan(begin, end - begin);
  }

 private:
  std::vector<Segment> cut(std::size_t from, std::size_t to) {
    std::vector<Segment> segments;
    const auto whole = whole_segments();
    for (std::size_t i = 0; i < whole.size(); ++i) {
      const core::Slice part = intersection(whole[i].slice, {from, to - from});
      if (part.empty()) continue;
      segments.push_back({.slice = part.seen_from(from), .decays = whole[i].decays});
      tensors.push_back(i);
    }
    return segments;
  }
};

/// Replaces each part's norms by the sum over all parts of the tensor.
void add_norms(std::span<Part> parts, std::vector<std::span<double>>& norms) {
  std::vector<double> sums(2 * whole_segments().size());
  for (std::size_t p = 0; p < parts.size(); ++p)
    for (std::size_t i = 0; i < norms[p].size(); ++i) sums[2 * parts[p].tensors[i / 2] + i % 2] += norms[p][i];
  for (std::size_t p = 0; p < parts.size(); ++p)
    for (std::size_t i = 0; i < norms[p].size(); ++i) norms[p][i] = sums[2 * parts[p].tensors[i / 2] + i % 2];
}

/// Some steps of an arena cut at `cuts`, with two ranks' gradients.
std::vector<float> train(const OptimizerSpec& spec, const std::vector<std::size_t>& cuts) {
  std::vector<float> parameters = noise(n_parameters, 1);
  std::vector<Part> parts;
  parts.reserve(cuts.size());
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) parts.emplace_back(spec, cuts[i], cuts[i + 1]);
  for (std::uint32_t step = 0; step < n_steps; ++step) {
    const std::vector<float> ranks[] = {noise(n_parameters, 100 + step), noise(n_parameters, 200 + step)};
    const auto gradients = [&](const Part& part) {
      return std::array{part.of(std::span<const float>(ranks[0])), part.of(std::span<const float>(ranks[1]))};
    };
    std::vector<std::span<double>> norms;
    for (Part& part : parts)
      norms.push_back(part.optimizer.begin_step(0.5F, gradients(part), part.of(std::span<float>(parameters))));
    add_norms(parts, norms);
    for (Part& part : parts)
      part.optimizer.finish_step(lr, 0.5F, gradients(part), part.of(std::span<float>(parameters)));
  }
  return parameters;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

OptimizerSpec busy_spec(OptimizerKind kind) {
  OptimizerSpec spec = default_spec(kind);
  spec.weight_decay = 0.1;
  spec.momentum = 0.9;
  return spec;
}

class EveryOptimizer : public testing::TestWithParam<OptimizerKind> {
 protected:
  OptimizerSpec spec_ = busy_spec(GetParam());
};

// Cuts within tensors and at odd places for optimizers without norms; at the ends of tensors for all, because the sum
// of a norm's parts rounds differently.
TEST_P(EveryOptimizer, PartsGiveTheSameBits) {
  const auto whole = train(spec_, {0, n_parameters});
  EXPECT_FALSE(same_bits(whole, noise(n_parameters, 1)));
  EXPECT_TRUE(same_bits(train(spec_, {0, 1100, 1164, n_parameters}), whole));
  if (!Optimizer{spec_, {}, 0}.needs_norms()) {
    EXPECT_TRUE(same_bits(train(spec_, {0, 1, 18, 1050, 1101, 1102, 2999, n_parameters}), whole));
  }
}

TEST_P(EveryOptimizer, PartsOfTensorsShareTheirNorms) {
  const auto whole = train(spec_, {0, n_parameters});
  const auto cut = train(spec_, {0, 500, 1130, 2000, n_parameters});
  for (std::size_t i = 0; i < n_parameters; ++i) ASSERT_NEAR(cut[i], whole[i], 1e-6F) << i;
}

TEST_P(EveryOptimizer, SumsTheRanksInOrder) {
  const std::vector<Segment> segments = whole_segments();
  std::vector<std::vector<float>> ranks;
  std::vector<float> sum(n_parameters);
  for (std::uint32_t n_ranks = 1; n_ranks <= 4; ++n_ranks) {
    ranks.push_back(noise(n_parameters, 10 + n_ranks));
    for (std::size_t i = 0; i < n_parameters; ++i) sum[i] = n_ranks == 1 ? ranks[0][i] : sum[i] + ranks.back()[i];
    std::vector<float> by_ranks = noise(n_parameters, 1), by_sum = by_ranks;
    const std::vector<std::span<const float>> gradients(ranks.begin(), ranks.end());
    const std::span<const float> one = sum;
    Optimizer{spec_, segments, n_parameters}.step(lr, 0.3F, gradients, by_ranks);
    Optimizer{spec_, segments, n_parameters}.step(lr, 0.3F, {&one, 1}, by_sum);
    EXPECT_TRUE(same_bits(by_ranks, by_sum)) << n_ranks << " ranks";
  }
}

TEST_P(EveryOptimizer, ScalesTheGradient) {
  const std::vector<float> gradient = noise(n_parameters, 5);
  std::vector<float> scaled = gradient;
  for (float& value : scaled) value *= 0.3F;
  std::vector<float> a = noise(n_parameters, 1), b = a;
  const std::span<const float> unscaled_span = gradient, scaled_span = scaled;
  Optimizer{spec_, whole_segments(), n_parameters}.step(lr, 0.3F, {&unscaled_span, 1}, a);
  Optimizer{spec_, whole_segments(), n_parameters}.step(lr, 1, {&scaled_span, 1}, b);
  EXPECT_TRUE(same_bits(a, b));
}

// Parts touch ends of segments, span several segments and are close to each other; distant gradients are not read.
TEST_P(EveryOptimizer, TouchedPartsGiveTheSameBits) {
  constexpr std::size_t n = 12'000;
  const std::vector<Segment> segments{{{0, 5000}}, {{5000, 1001}, false}, {{6001, 5999}}};
  const std::vector<core::Slice> touched{{0, 7}, {30, 50}, {2500, 10}, {4990, 1100}, {9000, 3}, {11'990, 10}};
  const std::vector<float> values = noise(n, 7);
  std::vector<float> dense(n), sparse(n, std::nanf(""));
  for (const core::Slice& part : touched) std::copy_n(&values[part.offset], part.count, &dense[part.offset]);
  if (Optimizer{spec_, {}, 0}.needs_norms())
    sparse = dense;
  else
    for (const core::Slice& part : touched) {
      const std::size_t begin = part.offset - std::min<std::size_t>(part.offset, 1023);
      std::copy_n(&dense[begin], part.end() - begin, &sparse[begin]);
    }
  std::vector<float> by_dense = noise(n, 1), by_sparse = by_dense;
  Optimizer a{spec_, segments, n}, b{spec_, segments, n};
  const std::span<const float> dense_span = dense, sparse_span = sparse;
  for (std::size_t step = 0; step < n_steps; ++step) {
    a.step(lr, 0.5F, {&dense_span, 1}, by_dense);
    (void)b.begin_step(0.5F, {&sparse_span, 1}, by_sparse);
    b.finish_step(lr, 0.5F, {&sparse_span, 1}, by_sparse, touched);
  }
  EXPECT_TRUE(same_bits(by_dense, by_sparse));
}

// Padding of blocked layouts, and elements outside tensors.
TEST_P(EveryOptimizer, LeavesPaddingZeroAndTheRestAlone) {
  std::vector<float> parameters(64, 1.0F), gradient(64, 0.5F);
  std::fill_n(parameters.begin() + 16, 8, 0.0F);
  std::fill_n(gradient.begin() + 16, 8, 0.0F);
  const std::span<const float> gradients = gradient;
  Optimizer optimizer{spec_, {{.slice = {0, 24}}, {.slice = {40, 24}}}, 64};
  for (std::size_t step = 0; step < n_steps; ++step) optimizer.step(lr, 1, {&gradients, 1}, parameters);
  for (std::size_t i = 0; i < 64; ++i) {
    if (i >= 16 && i < 24)
      EXPECT_EQ(parameters[i], 0.0F) << i;
    else if (i >= 24 && i < 40)
      EXPECT_EQ(parameters[i], 1.0F) << i;
    else
      EXPECT_LT(parameters[i], 1.0F) << i;
  }
}

// So that a run that diverges is seen.
TEST_P(EveryOptimizer, KeepsNaN) {
  std::vector<float> parameters(64, 1.0F), gradient(64, 0.5F);
  gradient[33] = std::nanf("");
  const std::span<const float> gradients = gradient;
  Optimizer optimizer{spec_, {{.slice = {0, 32}}, {.slice = {32, 32}}}, 64};
  optimizer.step(lr, 1, {&gradients, 1}, parameters);
  EXPECT_TRUE(std::isnan(parameters[33]));
  EXPECT_FALSE(std::isnan(parameters[31])) << "of another tensor";
}

TEST_P(EveryOptimizer, OfNoElementsDoesNothing) {
  Optimizer optimizer{spec_, {{.slice = {0, 0}}}, 0};
  const std::span<const float> nothing;
  optimizer.step(lr, 1, {&nothing, 1}, {});
  EXPECT_EQ(optimizer.n_steps(), 1);
  EXPECT_EQ(optimizer.squared_norms(1, {&nothing, 1})[0], 0);
}

// A run that is stopped, saved and loaded continues with the same bits.
TEST_P(EveryOptimizer, StateAndStepCountAreAll) {
  std::vector<float> gone_on = noise(n_parameters, 1);
  const std::vector<float> gradient = noise(n_parameters, 2);
  const std::span<const float> gradients = gradient;
  Optimizer first{spec_, whole_segments(), n_parameters};
  for (std::size_t step = 0; step < n_steps; ++step) first.step(lr, 1, {&gradients, 1}, gone_on);
  std::vector<float> loaded = gone_on;

  Optimizer second{spec_, whole_segments(), n_parameters};
  second.set_n_steps(first.n_steps());
  ASSERT_EQ(first.state().size(), second.state().size());
  for (std::size_t i = 0; i < first.state().size(); ++i) {
    EXPECT_EQ(first.state()[i].name, second.state()[i].name);
    std::ranges::copy(first.state()[i].values, second.state()[i].values.begin());
  }
  first.step(lr, 1, {&gradients, 1}, gone_on);
  second.step(lr, 1, {&gradients, 1}, loaded);
  EXPECT_TRUE(same_bits(gone_on, loaded));
}

INSTANTIATE_TEST_SUITE_P(All, EveryOptimizer, testing::ValuesIn(all_optimizer_kinds),
                         [](const auto& test) { return std::string(name(test.param)); });

// Checkpoints have these names.
TEST(Optimizer, NamesItsStates) {
  const auto names = [](OptimizerSpec spec) {
    std::string text;
    Optimizer optimizer{spec, {}, 0};
    for (const State& state : optimizer.state()) text += std::string(state.name) + ' ';
    return text;
  };
  EXPECT_EQ(names(default_spec(OptimizerKind::sgd)), "");
  EXPECT_EQ(names(busy_spec(OptimizerKind::sgd)), "momentum ");
  EXPECT_EQ(names(default_spec(OptimizerKind::adamw)), "exp_avg exp_avg_sq ");
  EXPECT_EQ(names(default_spec(OptimizerKind::adadelta)), "square_avg acc_delta ");
  EXPECT_EQ(names(default_spec(OptimizerKind::lars)), "momentum ");
  EXPECT_EQ(names(default_spec(OptimizerKind::lamb)), "exp_avg exp_avg_sq ");
}

TEST(Optimizer, SquaredNormsAreOfTheScaledSum) {
  const std::vector<float> a = noise(n_parameters, 1), b = noise(n_parameters, 2);
  const std::vector<std::span<const float>> gradients{a, b};
  const auto segments = whole_segments();
  Optimizer optimizer{default_spec(OptimizerKind::sgd), segments, n_parameters};
  const auto norms = optimizer.squared_norms(0.25F, gradients);
  ASSERT_EQ(norms.size(), segments.size());
  for (std::size_t s = 0; s < segments.size(); ++s) {
    double expected = 0;
    for (std::size_t i = segments[s].slice.offset; i < segments[s].slice.end(); ++i)
      expected += std::pow(static_cast<double>((a[i] + b[i]) * 0.25F), 2);
    EXPECT_NEAR(norms[s], expected, 1e-13 * expected) << s;
  }
}

TEST(Optimizer, RefusesBrokenPromises) {
  const OptimizerSpec spec = default_spec(OptimizerKind::sgd);
  EXPECT_THROW((Optimizer{spec, {{.slice = {8, 9}}}, 16}), core::Error);
  EXPECT_THROW((Optimizer{spec, {{.slice = {0, 9}}, {.slice = {8, 8}}}, 16}), core::Error);
  EXPECT_THROW((Optimizer{OptimizerSpec{.momentum = 2}, {}, 0}), core::Error);
  Optimizer optimizer{spec, {}, 16};
  std::vector<float> parameters(16);
  const std::span<const float> short_one = std::span<const float>(parameters).first(15);
  EXPECT_THROW(optimizer.step(lr, 1, {&short_one, 1}, parameters), core::Error);
  EXPECT_THROW(optimizer.step(lr, 1, {}, parameters), core::Error);
}

}  // namespace
}  // namespace lockstep::optim

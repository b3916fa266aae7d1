#include "optim/loops.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "golden.hpp"
#include "support/optimizer_specs.hpp"

namespace lockstep::optim {
namespace {

/// More than two blocks, and not a multiple of any vector.
constexpr std::size_t n_updated = 2500;

/// Gradients of three ranks, parameters and states for loops to process, from [7, n_updated).
class Arrays {
 public:
  Arrays() {
    Uniform uniform{3};
    for (auto& gradient : gradients_) fill(gradient, uniform, 0);
    fill(parameters_, uniform, 0);
    for (auto& state : states_) fill(state, uniform, 0.5F);  // 0 and above, as squares are
    for (std::size_t rank = 0; rank < 3; ++rank) sources_[rank] = gradients_[rank].data();
  }

  [[nodiscard]] Elements elements() {
    return {.gradients = sources_,
            .n_gradients = 3,
            .scale = 0.3F,
            .parameters = parameters_.data(),
            .state = {states_[0].data(), states_[1].data()},
            .offset = 7,
            .n = n_updated - 7};
  }

  [[nodiscard]] bool same_bits(const Arrays& other) const {
    const auto same = [](const std::vector<float>& a, const std::vector<float>& b) {
      return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
    };
    return same(parameters_, other.parameters_) && same(states_[0], other.states_[0]) &&
           same(states_[1], other.states_[1]);
  }

 private:
  static void fill(std::vector<float>& values, Uniform& uniform, float shift) {
    for (std::size_t i = 0; i < n_updated; ++i) values.push_back(uniform.next() + shift);
  }

  std::vector<float> gradients_[3]{};
  std::vector<float> parameters_{};
  std::vector<float> states_[2]{};
  const float* sources_[3]{};
};

/// What a step of the loops returns and writes.
struct Outcome {
  Arrays arrays{};
  SquaredNorms norms{};
};

Outcome step(const Loops& loops, const OptimizerSpec& spec) {
  const RuleLoops& rule = loops.rules[static_cast<std::size_t>(spec.kind)];
  const Settings settings{.spec = spec, .lr = 0.1, .step = 7};
  Outcome outcome;
  if (rule.measure != nullptr) outcome.norms = rule.measure(outcome.arrays.elements(), settings);
  rule.update(outcome.arrays.elements(), settings, outcome.norms);
  return outcome;
}

TEST(Loops, AllSetsGiveTheSameBits) {
  for (const auto& [name, spec] : test::optimizer_specs()) {
    const Outcome plain = step(*core::available_loops<Loops>().front(), spec);
    EXPECT_FALSE(plain.arrays.same_bits(Arrays{})) << name << " does nothing";
    EXPECT_EQ(plain.norms.parameter != 0 && plain.norms.update != 0, needs_norms(spec.kind)) << name;
    for (const Loops* loops : core::available_loops<Loops>()) {
      const Outcome outcome = step(*loops, spec);
      EXPECT_TRUE(outcome.arrays.same_bits(plain.arrays)) << name << " of " << core::name(loops->set);
      EXPECT_EQ(outcome.norms.parameter, plain.norms.parameter) << name << " of " << core::name(loops->set);
      EXPECT_EQ(outcome.norms.update, plain.norms.update) << name << " of " << core::name(loops->set);
    }
  }
}

TEST(Loops, SquaresAreSummedInDouble) {
  std::vector<float> values(n_updated, 1e-4F);
  values[0] = 1e2F;  // in float32 its square would absorb all the others
  const float* const gradient = values.data();
  const Elements elements{.gradients = &gradient, .n_gradients = 1, .n = n_updated};
  const double small = 1e-4F;
  const double large = 1e2F;
  const double first = core::available_loops<Loops>().front()->squared_gradient(elements);
  for (const Loops* loops : core::available_loops<Loops>()) {
    const double sum = loops->squared_gradient(elements);
    EXPECT_NEAR(sum - large * large, (n_updated - 1) * small * small, 1e-9) << core::name(loops->set);
    EXPECT_EQ(sum, first) << core::name(loops->set);
  }
}

}  // namespace
}  // namespace lockstep::optim

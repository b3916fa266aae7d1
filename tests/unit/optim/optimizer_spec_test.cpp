#include "optim/optimizer_spec.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace lockstep::optim {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(OptimizerSpec, DefaultsAreValid) {
  for (const OptimizerKind kind : all_optimizer_kinds) {
    EXPECT_EQ(default_spec(kind).kind, kind);
    EXPECT_NO_THROW(check(default_spec(kind))) << name(kind);
  }
}

struct BadOptimizer {
  std::string key;
  OptimizerKind kind;
  std::function<void(OptimizerSpec&)> spoil;
};

TEST(OptimizerSpec, NamesTheKeyOutOfRange) {
  using enum OptimizerKind;
  const std::vector<BadOptimizer> values{
      {"weight-decay", sgd, [](auto& s) { s.weight_decay = -1e-4; }},
      {"weight-decay", adamw, [](auto& s) { s.weight_decay = infinity; }},
      {"momentum", sgd, [](auto& s) { s.momentum = 1; }},
      {"momentum", lars, [](auto& s) { s.momentum = nan; }},
      {"dampening", sgd, [](auto& s) { s.dampening = -0.1; }},
      {"nesterov", sgd, [](auto& s) { s.nesterov = true; }},
      {"nesterov", sgd, [](auto& s) { s.nesterov = true, s.momentum = 0.9, s.dampening = 0.1; }},
      {"beta1", adam, [](auto& s) { s.beta1 = 1; }},
      {"beta2", lamb, [](auto& s) { s.beta2 = -0.5; }},
      {"eps", adamw, [](auto& s) { s.eps = 0; }},
      {"eps", adadelta, [](auto& s) { s.eps = 1e-60; }},
      {"rho", adadelta, [](auto& s) { s.rho = 1.5; }},
      {"trust", lars, [](auto& s) { s.trust = 0; }},
  };
  for (const BadOptimizer& bad : values) {
    OptimizerSpec spec = default_spec(bad.kind);
    bad.spoil(spec);
    const auto error = core::complaint_of([&] { check(spec); });
    ASSERT_TRUE(error) << bad.key << " of " << name(bad.kind);
    EXPECT_EQ(error->code(), core::ExitCode::usage);
    EXPECT_EQ(error->problem().where, bad.key);
    EXPECT_FALSE(error->problem().expected.empty());
  }
}

}  // namespace
}  // namespace lockstep::optim

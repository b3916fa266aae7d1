#include "optim/optimizer_spec.hpp"

#include <cmath>

#include "core/error.hpp"
#include "optim/expect.hpp"

namespace lockstep::optim {
namespace {

void expect_fraction(std::string_view key, double value) {
  expect(value >= 0 && value < 1, key, value, "a number from 0 up to, but not including, 1");
}

/// Checks eps in float32, the type of the addition: with 0, an element whose gradients are all 0 would become 0/0.
void expect_eps(double eps) {
  expect(static_cast<float>(eps) > 0 && std::isfinite(eps), "eps", eps, "a number greater than 0, such as 1e-8");
}

void check_nesterov(const OptimizerSpec& spec) {
  if (spec.nesterov && (spec.momentum == 0 || spec.dampening != 0))
    core::fail_usage({.what = fmt::format("nesterov with momentum {} and dampening {}", spec.momentum, spec.dampening),
                      .where = "nesterov",
                      .expected = "a momentum greater than 0 and no dampening",
                      .fix = "set momentum, to 0.9 for example, or leave nesterov out"});
}

}  // namespace

void check(const OptimizerSpec& spec) {
  expect(spec.weight_decay >= 0 && std::isfinite(spec.weight_decay), "weight-decay", spec.weight_decay,
         "a number of 0 or more");
  const Uses& uses = rule_row(spec.kind).description.uses;
  if (uses.momentum) expect_fraction("momentum", spec.momentum);
  if (uses.dampening)
    expect(spec.dampening >= 0 && spec.dampening <= 1, "dampening", spec.dampening, "a number from 0 to 1");
  if (uses.nesterov) check_nesterov(spec);
  if (uses.beta1) expect_fraction("beta1", spec.beta1);
  if (uses.beta2) expect_fraction("beta2", spec.beta2);
  if (uses.rho) expect_fraction("rho", spec.rho);
  if (uses.eps) expect_eps(spec.eps);
  if (uses.trust)
    expect(spec.trust > 0 && std::isfinite(spec.trust), "trust", spec.trust, "a number greater than 0, such as 0.001");
}

}  // namespace lockstep::optim

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

void check_sgd(const OptimizerSpec& spec) {
  expect_fraction("momentum", spec.momentum);
  expect(spec.dampening >= 0 && spec.dampening <= 1, "dampening", spec.dampening, "a number from 0 to 1");
  if (spec.nesterov && (spec.momentum == 0 || spec.dampening != 0))
    core::fail_usage({.what = fmt::format("nesterov with momentum {} and dampening {}", spec.momentum, spec.dampening),
                      .where = "nesterov",
                      .expected = "a momentum greater than 0 and no dampening",
                      .fix = "set momentum, to 0.9 for example, or leave nesterov out"});
}

void check_moments(const OptimizerSpec& spec) {
  expect_fraction("beta1", spec.beta1);
  expect_fraction("beta2", spec.beta2);
  expect_eps(spec.eps);
}

void check_adadelta(const OptimizerSpec& spec) {
  expect_fraction("rho", spec.rho);
  expect_eps(spec.eps);
}

void check_lars(const OptimizerSpec& spec) {
  expect_fraction("momentum", spec.momentum);
  expect(spec.trust > 0 && std::isfinite(spec.trust), "trust", spec.trust, "a number greater than 0, such as 0.001");
}

}  // namespace

std::string_view name(OptimizerKind kind) noexcept {
  switch (kind) {
    case OptimizerKind::sgd: return "sgd";
    case OptimizerKind::adam: return "adam";
    case OptimizerKind::adamw: return "adamw";
    case OptimizerKind::adadelta: return "adadelta";
    case OptimizerKind::lars: return "lars";
    case OptimizerKind::lamb: break;
  }
  return "lamb";
}

std::optional<OptimizerKind> find_optimizer_kind(std::string_view word) noexcept {
  for (const OptimizerKind kind : all_optimizer_kinds)
    if (name(kind) == word) return kind;
  return std::nullopt;
}

OptimizerSpec default_spec(OptimizerKind kind) noexcept {
  switch (kind) {
    case OptimizerKind::sgd:
    case OptimizerKind::adam: break;
    case OptimizerKind::adamw: return {.kind = kind, .weight_decay = 1e-2};
    case OptimizerKind::adadelta: return {.kind = kind, .eps = 1e-6};
    case OptimizerKind::lars: return {.kind = kind, .weight_decay = 5e-4, .momentum = 0.9};
    case OptimizerKind::lamb: return {.kind = kind, .weight_decay = 1e-2, .eps = 1e-6};
  }
  return {.kind = kind};
}

void check(const OptimizerSpec& spec) {
  expect(spec.weight_decay >= 0 && std::isfinite(spec.weight_decay), "weight-decay", spec.weight_decay,
         "a number of 0 or more");
  switch (spec.kind) {
    case OptimizerKind::sgd: return check_sgd(spec);
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
    case OptimizerKind::lamb: return check_moments(spec);
    case OptimizerKind::adadelta: return check_adadelta(spec);
    case OptimizerKind::lars: return check_lars(spec);
  }
}

}  // namespace lockstep::optim

// The numbers of a step, derived from the settings: rounded to float32 once, as in PyTorch.
// Invariant: pure; bias corrections are computed in double, as in PyTorch.
// Used by the families and, on a device, by cuda/prepare_bodies.hpp.
#pragma once

#include <cmath>
#include <cstdint>

#include "optim/kernels.hpp"
#include "optim/optimizer_spec.hpp"
#include "runtime/kernel/portable.hpp"

namespace lockstep::optim {

// Below, `decays` says whether the elements have weight decay; `step` counts from 1.

LOCKSTEP_HOST_DEVICE inline SgdNumbers sgd_numbers(const OptimizerSpec& spec, bool decays, double lr,
                                                   std::uint64_t step) {
  // The first gradient becomes the momentum without dampening, as in PyTorch.
  const double undamped = step == 1 ? 1 : 1 - spec.dampening;
  return {.decay = static_cast<float>(decays ? spec.weight_decay : 0),
          .lr = static_cast<float>(lr),
          .momentum = static_cast<float>(spec.momentum),
          .undamped = static_cast<float>(undamped),
          .is_nesterov = spec.nesterov};
}

/// Adam adds weight decay to the gradient, AdamW applies it to the parameter.
LOCKSTEP_HOST_DEVICE inline AdamNumbers adam_numbers(const OptimizerSpec& spec, bool decays, double lr,
                                                     std::uint64_t step) {
  const double decay = decays ? spec.weight_decay : 0;
  const bool is_decoupled = spec.kind == OptimizerKind::adamw;
  const auto t = static_cast<double>(step);
  const double bias1 = 1 - std::pow(spec.beta1, t);
  const double bias2 = 1 - std::pow(spec.beta2, t);
  return {.decay = static_cast<float>(is_decoupled ? 0 : decay),
          .keep = static_cast<float>(is_decoupled ? 1 - lr * decay : 1),
          .weight = static_cast<float>(1 - spec.beta1),
          .beta2 = static_cast<float>(spec.beta2),
          .weight2 = static_cast<float>(1 - spec.beta2),
          .bias2_sqrt = static_cast<float>(std::sqrt(bias2)),
          .eps = static_cast<float>(spec.eps),
          .rate = static_cast<float>(lr / bias1)};
}

LOCKSTEP_HOST_DEVICE inline AdadeltaNumbers adadelta_numbers(const OptimizerSpec& spec, bool decays, double lr) {
  return {.decay = static_cast<float>(decays ? spec.weight_decay : 0),
          .lr = static_cast<float>(lr),
          .rho = static_cast<float>(spec.rho),
          .weight = static_cast<float>(1 - spec.rho),
          .eps = static_cast<float>(spec.eps)};
}

/// Returns a tensor's rate by Algorithm 1 of the paper. A tensor that is 0, or whose gradient is, keeps the global
/// rate: by the formula a bias that begins as 0 would stay 0.
LOCKSTEP_HOST_DEVICE inline double lars_rate(const OptimizerSpec& spec, bool decays, double lr,
                                             const SquaredNorms& norms) {
  if (!decays || norms.parameter == 0 || norms.update == 0) return lr;
  const double parameter = std::sqrt(norms.parameter);
  return lr * (spec.trust * parameter / (std::sqrt(norms.update) + spec.weight_decay * parameter));
}

LOCKSTEP_HOST_DEVICE inline LarsNumbers lars_numbers(const OptimizerSpec& spec, bool decays, double rate) {
  return {.decay = static_cast<float>(decays ? spec.weight_decay : 0),
          .momentum = static_cast<float>(spec.momentum),
          .rate = static_cast<float>(rate)};
}

/// Returns a tensor's rate by Algorithm 2 of the paper with phi(z) = z. A tensor that is 0, or whose update is, keeps
/// the global rate, as in LARS.
LOCKSTEP_HOST_DEVICE inline double lamb_rate(bool decays, double lr, const SquaredNorms& norms) {
  const bool adapts = decays && norms.parameter != 0 && norms.update != 0;
  return adapts ? lr * std::sqrt(norms.parameter / norms.update) : lr;
}

LOCKSTEP_HOST_DEVICE inline LambNumbers lamb_numbers(const OptimizerSpec& spec, bool decays, double rate,
                                                     std::uint64_t step) {
  const auto t = static_cast<double>(step);
  return {.decay = static_cast<float>(decays ? spec.weight_decay : 0),
          .weight = static_cast<float>(1 - spec.beta1),
          .beta2 = static_cast<float>(spec.beta2),
          .weight2 = static_cast<float>(1 - spec.beta2),
          .bias1 = static_cast<float>(1 - std::pow(spec.beta1, t)),
          .bias2_sqrt = static_cast<float>(std::sqrt(1 - std::pow(spec.beta2, t))),
          .eps = static_cast<float>(spec.eps),
          .rate = static_cast<float>(rate)};
}

}  // namespace lockstep::optim

// The arithmetic of one element in each optimizer, shared by the loops of the host and the kernels of GPUs.
// Invariant: a*b+c is fused exactly where fused() says so, as in PyTorch's CPU kernels. On a processor without that
// instruction (x86 before 2013) fused() is a slow C function with the same result.
// Used by kernels_loops.cpp and cuda/. Each file has its own copy of these functions: one made for an instruction set
// must not serve another.
#pragma once

#include "optim/kernels.hpp"
#include "runtime/kernel/portable.hpp"

namespace lockstep::optim {
namespace {

/// a * b + c, rounded once.
LOCKSTEP_HOST_DEVICE inline float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
LOCKSTEP_HOST_DEVICE inline float root(float x) { return __builtin_sqrtf(x); }

// Below, `g` is the gradient, `p` the parameter; arguments that a step changes are passed by reference.

LOCKSTEP_HOST_DEVICE inline void step_sgd(float g, float& p, SgdNumbers s) {
  const float gradient = fused(p, s.decay, g);
  p = fused(gradient, -s.lr, p);
}

LOCKSTEP_HOST_DEVICE inline void step_sgd_momentum(float g, float& p, float& momentum, SgdNumbers s) {
  const float gradient = fused(p, s.decay, g);
  momentum = fused(gradient, s.undamped, momentum * s.momentum);
  const float direction = s.is_nesterov ? fused(momentum, s.momentum, gradient) : momentum;
  p = fused(direction, -s.lr, p);
}

/// Moves `average` towards `value`, starting at the nearer end like torch.lerp. One fused() follows both choices: with
/// one in each branch, loops are vectorized for AVX-512 only (Adam with AVX2 became 6 times as fast).
LOCKSTEP_HOST_DEVICE inline float mix(float average, float value, float weight) {
  const bool is_near = weight < 0.5F;
  return fused(is_near ? weight : weight - 1.0F, value - average, is_near ? average : value);
}

LOCKSTEP_HOST_DEVICE inline float mix_square(float average, float value, float keep, float weight) {
  return fused(weight * value, value, average * keep);
}

LOCKSTEP_HOST_DEVICE inline void step_adam(float g, float& p, float& exp_avg, float& exp_avg_sq, AdamNumbers s) {
  const float parameter = p * s.keep;
  const float gradient = fused(p, s.decay, g);
  exp_avg = mix(exp_avg, gradient, s.weight);
  exp_avg_sq = mix_square(exp_avg_sq, gradient, s.beta2, s.weight2);
  p = parameter - s.rate * exp_avg / (root(exp_avg_sq) / s.bias2_sqrt + s.eps);
}

LOCKSTEP_HOST_DEVICE inline void step_adadelta(float g, float& p, float& square_avg, float& acc_delta,
                                               AdadeltaNumbers s) {
  const float gradient = fused(p, s.decay, g);
  square_avg = mix_square(square_avg, gradient, s.rho, s.weight);
  const float delta = root(acc_delta + s.eps) / root(square_avg + s.eps) * gradient;
  acc_delta = mix_square(acc_delta, delta, s.rho, s.weight);
  p = fused(delta, -s.lr, p);
}

LOCKSTEP_HOST_DEVICE inline void step_lars(float g, float& p, float& momentum, LarsNumbers s) {
  const float gradient = fused(p, s.decay, g);
  momentum = fused(gradient, s.rate, momentum * s.momentum);
  p -= momentum;
}

LOCKSTEP_HOST_DEVICE inline float lamb_update(float p, float exp_avg, float exp_avg_sq, LambNumbers s) {
  return fused(p, s.decay, exp_avg / s.bias1 / (root(exp_avg_sq) / s.bias2_sqrt + s.eps));
}

/// First pass: returns the update.
LOCKSTEP_HOST_DEVICE inline float step_lamb_moments(float g, float p, float& exp_avg, float& exp_avg_sq,
                                                    LambNumbers s) {
  exp_avg = mix(exp_avg, g, s.weight);
  exp_avg_sq = mix_square(exp_avg_sq, g, s.beta2, s.weight2);
  return lamb_update(p, exp_avg, exp_avg_sq, s);
}

/// The second pass.
LOCKSTEP_HOST_DEVICE inline void step_lamb(float& p, float exp_avg, float exp_avg_sq, LambNumbers s) {
  p = fused(lamb_update(p, exp_avg, exp_avg_sq, s), -s.rate, p);
}

}  // namespace
}  // namespace lockstep::optim

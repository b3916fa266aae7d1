// What a rule is made of. A rule is an optimizer's arithmetic: one header in rules/, one row in rules.hpp.
// Invariant: one source for host and GPU with the same bits. a*b+c is fused exactly where fused() says so, as in
// PyTorch's CPU kernels. On a processor without that instruction (x86 before 2013) fused() is a slow C function with
// the same result.
// Used by rules/, and by what runs rules: loops.cpp on the host, cuda/device_rules.cu on GPUs.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "runtime/kernel/portable.hpp"

/// A function of a rule. Always inlined: a copy that is made for one instruction set must not serve another.
#define LOCKSTEP_RULE [[gnu::always_inline]] LOCKSTEP_HOST_DEVICE inline

namespace lockstep::optim {

/// Its enumerators are in rules.hpp.
enum class OptimizerKind : int;

/// The choice of a rule and its numbers; the learning rate belongs to the schedule. Each rule ignores the members that
/// it does not use.
struct OptimizerSpec {
  OptimizerKind kind{};
  double weight_decay = 0;  ///< all; added to the gradient, or decoupled
  double momentum = 0;
  double dampening = 0;
  bool nesterov = false;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double rho = 0.9;
  double eps = 1e-8;
  double trust = 0.001;

  bool operator==(const OptimizerSpec&) const = default;
};

/// The members of OptimizerSpec that a rule reads besides weight_decay.
struct Uses {
  bool momentum = false;
  bool dampening = false;
  bool nesterov = false;
  bool beta1 = false;
  bool beta2 = false;
  bool rho = false;
  bool eps = false;
  bool trust = false;
};

/// What a recipe says of a rule: its word, what it reads, and its defaults: PyTorch's, or the paper's if PyTorch has
/// none.
struct Description {
  std::string_view word;
  Uses uses{};
  OptimizerSpec defaults{};
  double lr = 1e-3;
};

/// Sums of squares, in double.
struct SquaredNorms {
  double parameter = 0;
  double update = 0;
};

/// The norms of whole tensors that a rule needs before it can write parameters.
enum class Norms {
  none,
  of_gradient,  ///< of parameters and gradients
  of_update,    ///< of parameters and of the update that the first pass returns
};

/// Settings of elements with one set of numbers in one step. `step` counts from 1.
struct Settings {
  const OptimizerSpec& spec;
  bool decays = true;  ///< whether they have weight decay
  double lr = 0;
  std::uint64_t step = 1;
};

/// What every rule has, with what is true of most. Besides, a rule has
///   description; states: their names, at most two, as in PyTorch;
///   Numbers: those of a step, rounded to float32 once, as in PyTorch; numbers(settings) computes them in double;
///   step(g, p, states..., numbers): updates one element; g is the gradient, p the parameter;
///   with norms: rate(settings, norms), the learning rate of a tensor, for Numbers::rate;
///   with Norms::of_update: measure(g, p, states..., numbers), which writes the states and returns the update; step()
///   has no g.
struct Rule {
  static constexpr Norms norms = Norms::none;
  /// The rule without the last state, if a momentum of 0 needs none.
  using WithoutMomentum = void;
  /// The rule whose states and step() it has, if it differs in its numbers alone.
  using Arithmetic = void;
};

template <class R>
using ArithmeticOf = std::conditional_t<std::is_void_v<typename R::Arithmetic>, R, typename R::Arithmetic>;

template <class R>
inline constexpr int n_states = static_cast<int>(R::states.size());

/// a * b + c, rounded once.
LOCKSTEP_RULE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
LOCKSTEP_RULE float root(float x) { return __builtin_sqrtf(x); }

/// Moves `average` towards `value`, starting at the nearer end like torch.lerp. One fused() follows both choices: with
/// one in each branch, loops are vectorized for AVX-512 only (Adam with AVX2 became 6 times as fast).
LOCKSTEP_RULE float mix(float average, float value, float weight) {
  const bool is_near = weight < 0.5F;
  return fused(is_near ? weight : weight - 1.0F, value - average, is_near ? average : value);
}

LOCKSTEP_RULE float mix_square(float average, float value, float keep, float weight) {
  return fused(weight * value, value, average * keep);
}

/// The correction of an average that began as 0.
LOCKSTEP_RULE double bias(double beta, std::uint64_t step) { return 1 - std::pow(beta, static_cast<double>(step)); }

LOCKSTEP_RULE double decay_of(const Settings& of) { return of.decays ? of.spec.weight_decay : 0; }

}  // namespace lockstep::optim

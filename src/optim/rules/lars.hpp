// LARS: You, Gitman, Ginsburg 2017 (arXiv 1708.03888), Algorithm 1.
#pragma once

#include "optim/rule.hpp"

namespace lockstep::optim {

struct Lars : Rule {
  static constexpr Description description{
      .word = "lars", .uses = {.momentum = true, .trust = true}, .defaults = {.weight_decay = 5e-4, .momentum = 0.9}};
  static constexpr std::array<std::string_view, 1> states{"momentum"};
  static constexpr Norms norms = Norms::of_gradient;

  struct Numbers {
    float decay;
    float momentum;
    float rate;  ///< lr times the tensor's trust ratio
  };

  LOCKSTEP_RULE static Numbers numbers(const Settings& of) {
    return {.decay = static_cast<float>(decay_of(of)),
            .momentum = static_cast<float>(of.spec.momentum),
            .rate = static_cast<float>(of.lr)};
  }

  /// A tensor that is 0, or whose gradient is, keeps the global rate: by the formula a bias that begins as 0 would stay
  /// 0.
  LOCKSTEP_RULE static double rate(const Settings& of, const SquaredNorms& of_tensor) {
    if (!of.decays || of_tensor.parameter == 0 || of_tensor.update == 0) return of.lr;
    const double parameter = std::sqrt(of_tensor.parameter);
    return of.lr * (of.spec.trust * parameter / (std::sqrt(of_tensor.update) + of.spec.weight_decay * parameter));
  }

  LOCKSTEP_RULE static void step(float g, float& p, float& momentum, const Numbers& s) {
    const float gradient = fused(p, s.decay, g);
    momentum = fused(gradient, s.rate, momentum * s.momentum);
    p -= momentum;
  }
};

}  // namespace lockstep::optim

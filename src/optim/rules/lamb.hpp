// LAMB: You et al. 2019 (arXiv 1904.00962), Algorithm 2 with phi(z) = z.
#pragma once

#include "optim/rule.hpp"

namespace lockstep::optim {

struct Lamb : Rule {
  static constexpr Description description{.word = "lamb",
                                           .uses = {.beta1 = true, .beta2 = true, .eps = true},
                                           .defaults = {.weight_decay = 1e-2, .eps = 1e-6}};
  static constexpr std::array<std::string_view, 2> states{"exp_avg", "exp_avg_sq"};
  static constexpr Norms norms = Norms::of_update;

  struct Numbers {
    float decay;
    float weight;  ///< 1 - beta1
    float beta2;
    float weight2;  ///< 1 - beta2
    float bias1;
    float bias2_sqrt;
    float eps;
    float rate;  ///< lr times the tensor's trust ratio; for the second pass only
  };

  LOCKSTEP_RULE static Numbers numbers(const Settings& of) {
    return {.decay = static_cast<float>(decay_of(of)),
            .weight = static_cast<float>(1 - of.spec.beta1),
            .beta2 = static_cast<float>(of.spec.beta2),
            .weight2 = static_cast<float>(1 - of.spec.beta2),
            .bias1 = static_cast<float>(bias(of.spec.beta1, of.step)),
            .bias2_sqrt = static_cast<float>(std::sqrt(bias(of.spec.beta2, of.step))),
            .eps = static_cast<float>(of.spec.eps),
            .rate = static_cast<float>(of.lr)};
  }

  /// A tensor that is 0, or whose update is, keeps the global rate, as in LARS.
  LOCKSTEP_RULE static double rate(const Settings& of, const SquaredNorms& of_tensor) {
    const bool adapts = of.decays && of_tensor.parameter != 0 && of_tensor.update != 0;
    return adapts ? of.lr * std::sqrt(of_tensor.parameter / of_tensor.update) : of.lr;
  }

  LOCKSTEP_RULE static float measure(float g, float p, float& exp_avg, float& exp_avg_sq, const Numbers& s) {
    exp_avg = mix(exp_avg, g, s.weight);
    exp_avg_sq = mix_square(exp_avg_sq, g, s.beta2, s.weight2);
    return update(p, exp_avg, exp_avg_sq, s);
  }

  LOCKSTEP_RULE static void step(float& p, float exp_avg, float exp_avg_sq, const Numbers& s) {
    p = fused(update(p, exp_avg, exp_avg_sq, s), -s.rate, p);
  }

 private:
  LOCKSTEP_RULE static float update(float p, float exp_avg, float exp_avg_sq, const Numbers& s) {
    return fused(p, s.decay, exp_avg / s.bias1 / (root(exp_avg_sq) / s.bias2_sqrt + s.eps));
  }
};

}  // namespace lockstep::optim

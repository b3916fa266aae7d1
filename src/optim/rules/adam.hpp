// Adam and AdamW as in torch.optim. Adam adds weight decay to the gradient, AdamW applies it to the parameter.
#pragma once

#include "optim/rule.hpp"

namespace lockstep::optim {

struct Adam : Rule {
  static constexpr Description description{.word = "adam", .uses = {.beta1 = true, .beta2 = true, .eps = true}};
  static constexpr std::array<std::string_view, 2> states{"exp_avg", "exp_avg_sq"};

  struct Numbers {
    float decay;   ///< added to the gradient, times the parameter
    float keep;    ///< multiplies the parameter
    float weight;  ///< 1 - beta1
    float beta2;
    float weight2;  ///< 1 - beta2
    float bias2_sqrt;
    float eps;
    float rate;  ///< lr with the bias correction of the first moment
  };

  LOCKSTEP_RULE static Numbers numbers(const Settings& of, double decay, double keep) {
    return {.decay = static_cast<float>(decay),
            .keep = static_cast<float>(keep),
            .weight = static_cast<float>(1 - of.spec.beta1),
            .beta2 = static_cast<float>(of.spec.beta2),
            .weight2 = static_cast<float>(1 - of.spec.beta2),
            .bias2_sqrt = static_cast<float>(std::sqrt(bias(of.spec.beta2, of.step))),
            .eps = static_cast<float>(of.spec.eps),
            .rate = static_cast<float>(of.lr / bias(of.spec.beta1, of.step))};
  }
  LOCKSTEP_RULE static Numbers numbers(const Settings& of) { return numbers(of, decay_of(of), 1); }

  LOCKSTEP_RULE static void step(float g, float& p, float& exp_avg, float& exp_avg_sq, const Numbers& s) {
    const float parameter = p * s.keep;
    const float gradient = fused(p, s.decay, g);
    exp_avg = mix(exp_avg, gradient, s.weight);
    exp_avg_sq = mix_square(exp_avg_sq, gradient, s.beta2, s.weight2);
    p = parameter - s.rate * exp_avg / (root(exp_avg_sq) / s.bias2_sqrt + s.eps);
  }
};

struct AdamW : Adam {
  using Arithmetic = Adam;
  static constexpr Description description{
      .word = "adamw", .uses = Adam::description.uses, .defaults = {.weight_decay = 1e-2}};

  LOCKSTEP_RULE static Numbers numbers(const Settings& of) { return Adam::numbers(of, 0, 1 - of.lr * decay_of(of)); }
};

}  // namespace lockstep::optim

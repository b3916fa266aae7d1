// Lion: Chen et al. 2023 (arXiv 2302.06675), Algorithm 2. Weight decay is decoupled from the gradient.
#pragma once

#include "optim/rule.hpp"

namespace lockstep::optim {

struct Lion : Rule {
  static constexpr Description description{
      .word = "lion", .uses = {.beta1 = true, .beta2 = true}, .defaults = {.beta2 = 0.99}, .lr = 1e-4};
  static constexpr std::array<std::string_view, 1> states{"exp_avg"};

  struct Numbers {
    float decay;
    float lr;
    float beta1;
    float weight1;  ///< 1 - beta1
    float beta2;
    float weight2;  ///< 1 - beta2
  };

  LOCKSTEP_RULE static Numbers numbers(const Settings& of) {
    return {.decay = static_cast<float>(decay_of(of)),
            .lr = static_cast<float>(of.lr),
            .beta1 = static_cast<float>(of.spec.beta1),
            .weight1 = static_cast<float>(1 - of.spec.beta1),
            .beta2 = static_cast<float>(of.spec.beta2),
            .weight2 = static_cast<float>(1 - of.spec.beta2)};
  }

  LOCKSTEP_RULE static void step(float g, float& p, float& exp_avg, const Numbers& s) {
    const float update = fused(g, s.weight1, exp_avg * s.beta1);
    const float sign = update > 0 ? 1.0F : update < 0 ? -1.0F : update;  // NaN stays NaN
    p = fused(fused(p, s.decay, sign), -s.lr, p);
    exp_avg = fused(g, s.weight2, exp_avg * s.beta2);
  }
};

}  // namespace lockstep::optim

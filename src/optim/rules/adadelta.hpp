// Adadelta as in torch.optim.
#pragma once

#include "optim/rule.hpp"

namespace lockstep::optim {

struct Adadelta : Rule {
  static constexpr Description description{
      .word = "adadelta", .uses = {.rho = true, .eps = true}, .defaults = {.eps = 1e-6}, .lr = 1};
  static constexpr std::array<std::string_view, 2> states{"square_avg", "acc_delta"};

  struct Numbers {
    float decay;
    float lr;
    float rho;
    float weight;  ///< 1 - rho
    float eps;
  };

  LOCKSTEP_RULE static Numbers numbers(const Settings& of) {
    return {.decay = static_cast<float>(decay_of(of)),
            .lr = static_cast<float>(of.lr),
            .rho = static_cast<float>(of.spec.rho),
            .weight = static_cast<float>(1 - of.spec.rho),
            .eps = static_cast<float>(of.spec.eps)};
  }

  LOCKSTEP_RULE static void step(float g, float& p, float& square_avg, float& acc_delta, const Numbers& s) {
    const float gradient = fused(p, s.decay, g);
    square_avg = mix_square(square_avg, gradient, s.rho, s.weight);
    const float delta = root(acc_delta + s.eps) / root(square_avg + s.eps) * gradient;
    acc_delta = mix_square(acc_delta, delta, s.rho, s.weight);
    p = fused(delta, -s.lr, p);
  }
};

}  // namespace lockstep::optim

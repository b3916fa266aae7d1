// SGD as in torch.optim, with and without momentum.
#pragma once

#include "optim/rule.hpp"

namespace lockstep::optim {

struct Sgd : Rule {
  static constexpr Description description{.word = "sgd",
                                           .uses = {.momentum = true, .dampening = true, .nesterov = true}};
  static constexpr std::array<std::string_view, 1> states{"momentum"};

  struct Numbers {
    float decay;
    float lr;
    float momentum;
    float undamped;  ///< 1 - dampening
    bool is_nesterov;
  };

  LOCKSTEP_RULE static Numbers numbers(const Settings& of) {
    // The first gradient becomes the momentum without dampening, as in PyTorch.
    const double undamped = of.step == 1 ? 1 : 1 - of.spec.dampening;
    return {.decay = static_cast<float>(decay_of(of)),
            .lr = static_cast<float>(of.lr),
            .momentum = static_cast<float>(of.spec.momentum),
            .undamped = static_cast<float>(undamped),
            .is_nesterov = of.spec.nesterov};
  }

  LOCKSTEP_RULE static void step(float g, float& p, float& momentum, const Numbers& s) {
    const float gradient = fused(p, s.decay, g);
    momentum = fused(gradient, s.undamped, momentum * s.momentum);
    const float direction = s.is_nesterov ? fused(momentum, s.momentum, gradient) : momentum;
    p = fused(direction, -s.lr, p);
  }

  struct WithoutMomentum;
};

struct Sgd::WithoutMomentum : Sgd {
  static constexpr std::array<std::string_view, 0> states{};

  LOCKSTEP_RULE static void step(float g, float& p, const Numbers& s) {
    const float gradient = fused(p, s.decay, g);
    p = fused(gradient, -s.lr, p);
  }
};

}  // namespace lockstep::optim

// Clipping of gradients by their global norm, as in torch.nn.utils.clip_grad_norm_.
// Invariant: pure; NaN stays NaN, so that a diverged step is visible.
// Used by parallel/, which adds up the owners' norms, and by cuda/.
#pragma once

namespace lockstep::optim {

/// Returns the factor for all gradients that limits their norm to `max_norm`: max_norm / (norm + 1e-6), at most 1.
[[nodiscard]] constexpr double clip_factor(double norm, double max_norm) noexcept {
  const double factor = max_norm / (norm + 1e-6);
  return factor > 1 ? 1 : factor;
}

}  // namespace lockstep::optim

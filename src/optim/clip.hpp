// Clipping of gradients by their global norm, as torch.nn.utils.clip_grad_norm_.
// Invariant: pure; not a number stays not a number, so that a diverged step is seen and not hidden.
// Used by parallel/, which adds up the owners' norms, and by cuda/.
#pragma once

namespace lockstep::optim {

/// What multiplies all gradients so that their norm is at most `max_norm`: max_norm / (norm + 1e-6), at most 1.
[[nodiscard]] constexpr double clip_factor(double norm, double max_norm) noexcept {
  const double factor = max_norm / (norm + 1e-6);
  return factor > 1 ? 1 : factor;
}

}  // namespace lockstep::optim

// Clipping of gradients by their global norm, as torch.nn.utils.clip_grad_norm_.
// Invariant: pure; not a number stays not a number, so that a diverged step is seen and not hidden.
// Used by parallel/, which adds up the owners' norms.
#pragma once

namespace lockstep::optim {

/// What multiplies all gradients so that their norm is at most `max_norm`: max_norm / (norm + 1e-6), at most 1.
[[nodiscard]] double clip_factor(double norm, double max_norm) noexcept;

}  // namespace lockstep::optim

// A device's record of an optimizer's steps: how many are done, the scale of the loss, and the result of this one.
// Invariant: only prepare() changes it, in the device's memory, so a recorded step stays valid. A step with gradients
// that are not finite leaves everything unchanged, without the host.
// Used by the kernels of this folder, and by the code that multiplies the loss by loss_scale.
#pragma once

#include <cfloat>
#include <cmath>
#include <cstdint>

#include "core/step_numbers.hpp"
#include "optim/clip.hpp"
#include "runtime/kernel/portable.hpp"

namespace lockstep::optim::cuda {

/// The numbers of torch.cuda.amp.GradScaler.
struct LossScaling {
  /// If false, the scale is constant, and a gradient that is not finite stops training: that step and all later ones
  /// are skipped.
  bool is_dynamic = false;
  float initial = 65536;
  float growth = 2;
  float backoff = 0.5F;
  std::uint32_t interval = 2000;  ///< of good steps, after which the scale grows
};

struct StepState {
  std::uint64_t n_steps = 0;  ///< done; those skipped do not count
  std::uint64_t n_skipped = 0;
  float loss_scale = 1;      ///< of the next step; LossScaling::initial before the first, if dynamic
  std::uint32_t n_good = 0;  ///< steps in a row since it last changed
  std::uint32_t is_halted = 0;

  // About this step, set by prepare():
  std::uint32_t skips = 0;  ///< 1: kernels touch nothing
  float factor = 1;         ///< multiplies each gradient
  double norm = 0;          ///< of the gradient, before clipping; 0 if not measured
};

/// As GradScaler.update(), but keeps the scale if it would become infinite.
LOCKSTEP_HOST_DEVICE inline void update_loss_scale(StepState& state, const LossScaling& scaling, bool is_good) {
  if (!is_good) {
    state.loss_scale *= scaling.backoff;
    state.n_good = 0;
  } else if (++state.n_good == scaling.interval) {
    const float grown = state.loss_scale * scaling.growth;
    if (grown <= FLT_MAX) state.loss_scale = grown;
    state.n_good = 0;
  }
}

/// `squares`: the sum of squares of the gradient, before division by the scales; max_norm 0: no clipping. A gradient
/// whose norm exceeds float32 also counts as not finite.
LOCKSTEP_HOST_DEVICE inline void begin_step(StepState& state, const core::StepNumbers& numbers,
                                            const LossScaling& scaling, double squares, double max_norm) {
  const float unscale = 1 / (numbers.scale * state.loss_scale);
  state.norm = std::sqrt(squares) * static_cast<double>(unscale);
  const bool is_finite = state.norm <= static_cast<double>(FLT_MAX);
  if (!is_finite && !scaling.is_dynamic) state.is_halted = 1;
  const bool is_good = is_finite && state.is_halted == 0;
  state.skips = is_good ? 0 : 1;
  state.factor = unscale;
  if (max_norm > 0) state.factor *= static_cast<float>(clip_factor(state.norm, max_norm));
  if (is_good)
    ++state.n_steps;
  else
    ++state.n_skipped;
  if (scaling.is_dynamic) update_loss_scale(state, scaling, is_good);
}

}  // namespace lockstep::optim::cuda

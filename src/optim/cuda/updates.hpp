// One launch per optimizer step on a device, over a whole arena.
// Invariant: elements get the same bits as from the host's kernels for the same gradient and numbers; a skipped step
// touches nothing.
// Used by code that enqueues a step, after prepare(); the host need not know when the step runs.
#pragma once

#include <array>

#include "optim/cuda/arena.hpp"
#include "optim/cuda/pieces.hpp"
#include "optim/cuda/step_state.hpp"
#include "optim/kernels.hpp"

namespace lockstep::optim::cuda {

struct Step {
  Gradient gradient{};
  DeviceSpan<float> parameters{};
  std::array<DeviceSpan<float>, 2> state{};  ///< in the order of Elements::state
  /// Also written, rounded to nearest: in the type of a 16-bit gradient, or in either type with float32.
  Copy copy{};
  DeviceSpan<const Piece> pieces{};    ///< of the whole arena, or a run of them
  DeviceSpan<const StepState> done{};  ///< one, from prepare()
};

// `numbers` has an entry for every range.

/// Uses momentum if there is a state.
void sgd(Stream& stream, const Step& step, DeviceSpan<const SgdNumbers> numbers);
void adam(Stream& stream, const Step& step, DeviceSpan<const AdamNumbers> numbers);
void adadelta(Stream& stream, const Step& step, DeviceSpan<const AdadeltaNumbers> numbers);
/// Requires adapt() before.
void lars(Stream& stream, const Step& step, DeviceSpan<const LarsNumbers> numbers);

/// One number per piece of the step, for add_up().
struct LambPartials {
  DeviceSpan<double> parameter{};
  DeviceSpan<double> update{};
};
/// First pass: computes the state, and squares of parameters and updates.
void lamb_moments(Stream& stream, const Step& step, DeviceSpan<const LambNumbers> numbers,
                  const LambPartials& partials);
/// Second pass, after adapt(): writes the parameters and the copy. Reads no gradient.
void lamb(Stream& stream, const Step& step, DeviceSpan<const LambNumbers> numbers);

}  // namespace lockstep::optim::cuda

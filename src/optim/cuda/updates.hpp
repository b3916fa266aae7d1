// A step of each optimizer on a device, over all of an arena in one launch.
// Invariant: an element gets the bits that the host's kernels give it for the same gradient and numbers; a step that is
// to be skipped touches nothing.
// Used by who enqueues a step, after prepare(): nothing here is the host's to know when it does.
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
  /// Written too, rounded to nearest; in the type of a 16-bit gradient, or either with float32.
  Copy copy{};
  DeviceSpan<const Piece> pieces{};    ///< of the whole arena, or some in a row
  DeviceSpan<const StepState> done{};  ///< one, of prepare()
};

// `numbers` are those of every range.

/// With momentum if there is a state.
void sgd(Stream& stream, const Step& step, DeviceSpan<const SgdNumbers> numbers);
void adam(Stream& stream, const Step& step, DeviceSpan<const AdamNumbers> numbers);
void adadelta(Stream& stream, const Step& step, DeviceSpan<const AdadeltaNumbers> numbers);
/// After adapt().
void lars(Stream& stream, const Step& step, DeviceSpan<const LarsNumbers> numbers);

/// One number per piece of the step, for add_up().
struct LambPartials {
  DeviceSpan<double> parameter{};
  DeviceSpan<double> update{};
};
/// The first pass: the state and squares of parameters and updates.
void lamb_moments(Stream& stream, const Step& step, DeviceSpan<const LambNumbers> numbers,
                  const LambPartials& partials);
/// The second, after adapt(): the parameters and the copy. Reads no gradient.
void lamb(Stream& stream, const Step& step, DeviceSpan<const LambNumbers> numbers);

}  // namespace lockstep::optim::cuda

// The numbers of a step, computed on the device from its rate, the steps done so far and the norm of its gradient.
// Invariant: the host provides only the rate and the scale, so a recorded step stays valid. A step whose gradient is
// not finite gets no numbers: it is skipped.
// Used by code that enqueues a step, after the sum of all ranks' parts of the norm.
#pragma once

#include "core/step_numbers.hpp"
#include "optim/cuda/arena.hpp"
#include "optim/cuda/pieces.hpp"
#include "optim/cuda/step_state.hpp"
#include "optim/kernels.hpp"
#include "optim/optimizer_spec.hpp"

namespace lockstep::optim::cuda {

struct Preparation {
  DeviceSpan<const core::StepNumbers> step{};  ///< one
  DeviceSpan<StepState> state{};               ///< one
  DeviceSpan<const PieceRange> ranges{};
  /// Squares of the gradient in memory, added up in this order. Empty if it was not measured.
  DeviceSpan<const double> squares{};
  OptimizerSpec spec{};
  double max_norm = 0;  ///< 0: gradients are not clipped
  LossScaling scaling{};
};

// `numbers` has one entry per range. Those of lars and lamb have the global rate until adapt().

void prepare(Stream& stream, const Preparation& of, DeviceSpan<SgdNumbers> numbers);
void prepare(Stream& stream, const Preparation& of, DeviceSpan<AdamNumbers> numbers);
void prepare(Stream& stream, const Preparation& of, DeviceSpan<AdadeltaNumbers> numbers);
void prepare(Stream& stream, const Preparation& of, DeviceSpan<LarsNumbers> numbers);
void prepare(Stream& stream, const Preparation& of, DeviceSpan<LambNumbers> numbers);

/// The norms of whole tensors, one per range.
struct Norms {
  DeviceSpan<const double> parameter{};
  DeviceSpan<const double> update{};  ///< lars: of the gradient in memory
};

/// Computes the rates of tensors, after prepare(); reads step, state, ranges and spec of `of`.
void adapt(Stream& stream, const Preparation& of, const Norms& norms, DeviceSpan<LarsNumbers> numbers);
void adapt(Stream& stream, const Preparation& of, const Norms& norms, DeviceSpan<LambNumbers> numbers);

}  // namespace lockstep::optim::cuda

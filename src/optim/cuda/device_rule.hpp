// The kernels of every rule, and a step of them over a whole arena on a device.
// Invariant: elements get the same bits as from the host's loops for the same gradient and numbers. The host provides
// only the rate and the scale, and need not know when the step runs, so a recorded step stays valid. A step whose
// gradient is not finite is skipped: it touches nothing but StepState.
// Used by DeviceOptimizer; implemented for all rules by device_rules.cu.
#pragma once

#include <array>
#include <cstddef>

#include "core/step_numbers.hpp"
#include "optim/cuda/arena.hpp"
#include "optim/cuda/step_state.hpp"
#include "optim/rules.hpp"

namespace lockstep::optim::cuda {

/// What a step's numbers are computed from.
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

/// The arrays of a step.
struct StepArrays {
  Gradient gradient{};
  DeviceSpan<float> parameters{};
  std::array<DeviceSpan<float>, 2> state{};  ///< in the order of state_names()
  /// Also written, rounded to nearest: in the type of a 16-bit gradient, or in either type with float32.
  Copy copy{};
  DeviceSpan<const BlockPiece> pieces{};  ///< of the whole arena, or a run of them
  DeviceSpan<const StepState> done{};     ///< one, from prepare()
};

/// Squares of parameters, and of gradients or updates.
struct Squares {
  DeviceSpan<double> parameter{};
  DeviceSpan<double> update{};
};

/// The kernels of a rule. `numbers`: R::Numbers for every range.
struct DeviceRule {
  std::size_t numbers_bytes = 0;  ///< of a range
  /// Decides about the step, then computes its numbers. Rates of tensors are the global one until adapt().
  void (*prepare)(Stream& stream, const Preparation& of, DeviceSpan<std::byte> numbers) = nullptr;
  /// With Norms::of_update: the first pass, which writes the states, and squares by piece.
  void (*measure)(Stream& stream, const StepArrays& step, DeviceSpan<std::byte> numbers,
                  const Squares& by_piece) = nullptr;
  /// With norms: computes the rates of tensors; reads step, state, ranges and spec of `of`. `by_range`: the norms of
  /// whole tensors; with Norms::of_gradient of the gradient in memory.
  void (*adapt)(Stream& stream, const Preparation& of, const Squares& by_range,
                DeviceSpan<std::byte> numbers) = nullptr;
  /// The last pass, which writes parameters and their copy. Uses momentum if there is its state.
  void (*update)(Stream& stream, const StepArrays& step, DeviceSpan<std::byte> numbers) = nullptr;
};

[[nodiscard]] const DeviceRule& device_rule(OptimizerKind kind) noexcept;

/// Enqueues a whole step, from prepare() to update(). With norms, `of.squares` are those of each piece, and `by_piece`
/// and `by_range` have room for the rule's.
void enqueue_step(Stream& stream, const Preparation& of, const StepArrays& step, DeviceSpan<std::byte> numbers,
                  const Squares& by_piece, const Squares& by_range);

}  // namespace lockstep::optim::cuda

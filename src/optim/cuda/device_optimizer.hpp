// The optimizer of an arena in a device's memory: its state, and the kernels of a step in their order.
// Invariant: enqueue() allocates nothing and waits for nothing, and enqueues the same for every step. A step whose
// gradient is not finite changes only the scale of the loss. Without dynamic scaling, all steps after it do nothing,
// until restart().
// Used by parallel/.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/step_numbers.hpp"
#include "optim/cuda/arena.hpp"
#include "optim/cuda/step_state.hpp"
#include "optim/loss_scale.hpp"
#include "optim/optimizer.hpp"

namespace lockstep::optim::cuda {

class DeviceOptimizer {
 public:
  /// `segments`: whole tensors, as Optimizer and cut() take them.
  DeviceOptimizer(const OptimizerSpec& spec, std::span<const Segment> segments, std::size_t n_elements,
                  const LossScaling& scaling = {});

  struct Operands {
    DeviceSpan<const core::StepNumbers> numbers{};  ///< one
    Gradient gradient{};                            ///< summed over ranks
    DeviceSpan<float> parameters{};
    Copy copy{};
  };
  /// max_norm 0: gradients are not clipped.
  void enqueue(Stream& stream, const Operands& on, double max_norm);

  /// One element: the result of the last step.
  [[nodiscard]] DeviceSpan<const StepState> progress() const noexcept { return progress_.on_device<StepState>(); }

  /// How kernels cut the arena: a range is a segment.
  [[nodiscard]] DeviceSpan<const BlockPiece> pieces() const noexcept { return pieces_.on_device<BlockPiece>(); }
  [[nodiscard]] DeviceSpan<const PieceRange> ranges() const noexcept { return ranges_.on_device<PieceRange>(); }

  struct DeviceState {
    std::string_view name;  ///< as in optim::State
    DeviceSpan<float> values;
  };
  [[nodiscard]] std::span<const DeviceState> state() const noexcept { return state_; }

  /// Declares that parameters and state are those after `n_steps` steps. `scale`: the loss scale at that point, if it
  /// is dynamic. Waits for earlier operations of `stream`.
  void restart(Stream& stream, std::uint64_t n_steps, const std::optional<LossScale>& scale = {});

 private:
  OptimizerSpec spec_;
  LossScaling scaling_;
  runtime::Buffer pieces_{}, ranges_{}, squares_{}, progress_{}, numbers_{};
  std::array<runtime::Buffer, 2> by_piece_{}, by_range_{};  ///< Squares, if the rule needs norms
  std::vector<runtime::Buffer> arrays_{};
  std::vector<DeviceState> state_{};
};

}  // namespace lockstep::optim::cuda

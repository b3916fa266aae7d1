// The optimizer of an arena in a device's memory: its state, and the kernels of a step in their order.
// Invariant: a step allocates nothing and waits for nothing, and enqueues the same every time. If its gradient is not
// finite, it changes only the scale of the loss. Without dynamic scaling, all steps after it do nothing, until
// restart(). With the same sums, all ranks decide alike.
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

struct Preparation;
struct StepArrays;

/// A part of a tensor; its slice counts from the begin of a run.
struct RunPiece {
  std::size_t tensor = 0;
  core::Slice slice{};
};

/// Elements that follow one another in every array, and are updated at once. States have one run after another.
struct Run {
  std::size_t n_elements = 0;
  std::vector<RunPiece> pieces{};  ///< ascending, as cut() takes them
  /// Whether this rank adds squares of these elements. Of a run that all ranks have, one rank does. Runs that are not
  /// counted follow the others.
  bool is_counted = true;
};

class DeviceOptimizer {
 public:
  /// `segments`: whole tensors, as Optimizer and cut() take them.
  DeviceOptimizer(const OptimizerSpec& spec, std::span<const Segment> segments, std::size_t n_elements,
                  const LossScaling& scaling = {});

  /// For a rank that updates parts of tensors. `decays`: Segment::decays of all tensors. `sums` has n_sums() numbers.
  DeviceOptimizer(const OptimizerSpec& spec, const std::vector<bool>& decays, std::span<const Run> runs,
                  DeviceSpan<double> sums, const LossScaling& scaling = {});
  /// The squares of the gradient, then those of each tensor's parameters and updates, if the rule needs norms.
  [[nodiscard]] static std::size_t n_sums(const OptimizerSpec& spec, std::size_t n_tensors) noexcept {
    return 1 + (needs_norms(spec.kind) ? 2 * n_tensors : 0);
  }

  struct Operands {
    DeviceSpan<const core::StepNumbers> numbers{};  ///< one
    Gradient gradient{};                            ///< summed over ranks
    DeviceSpan<float> parameters{};
    Copy copy{};
  };
  /// max_norm 0: gradients are not clipped.
  void enqueue(Stream& stream, const Operands& on, double max_norm);

  // The same for runs, in this order, with the operands of each. Between them the caller replaces the sums that the
  // call before has written by those of all ranks.

  /// Writes the first of the sums.
  void add_squares(Stream& stream, std::span<const Operands> runs);
  void prepare(Stream& stream, const Operands& any, double max_norm);
  /// If the rule needs norms: writes the other sums.
  void add_norms(Stream& stream, std::span<const Operands> runs);
  /// If the rule needs norms.
  void adapt(Stream& stream, const Operands& any);
  void update(Stream& stream, std::size_t run, const Operands& on);

  /// One element: the result of the last step.
  [[nodiscard]] DeviceSpan<const StepState> progress() const noexcept { return progress_.on_device<StepState>(); }

  struct DeviceState {
    std::string_view name;  ///< as in optim::State
    DeviceSpan<float> values;
  };
  [[nodiscard]] std::span<const DeviceState> state() const noexcept { return state_; }

  /// Declares that parameters and state are those after `n_steps` steps. `scale`: the loss scale at that point, if it
  /// is dynamic. Waits for earlier operations of `stream`.
  void restart(Stream& stream, std::uint64_t n_steps, const std::optional<LossScale>& scale = {});

 private:
  /// The elements of a run in the states, and its pieces.
  struct PlannedRun {
    core::Slice elements{};
    core::Slice pieces{};
  };

  void allocate(const Cut& parts, std::size_t n_elements);
  [[nodiscard]] Preparation preparation(const Operands& on, DeviceSpan<const double> squares, double max_norm) const;
  [[nodiscard]] StepArrays arrays_of(const PlannedRun& run, const Operands& on) const;
  [[nodiscard]] DeviceSpan<double> sums_of_tensors(std::size_t i) const;

  OptimizerSpec spec_;
  LossScaling scaling_;
  std::vector<PlannedRun> runs_{};
  DeviceSpan<double> sums_{};
  runtime::Buffer pieces_{}, ranges_{}, squares_{}, progress_{}, numbers_{};
  runtime::Buffer counted_{};  ///< ranges of counted pieces: of all together, then of each tensor
  std::array<runtime::Buffer, 2> by_piece_{}, by_range_{};  ///< Squares, if the rule needs norms
  std::vector<runtime::Buffer> arrays_{};
  std::vector<DeviceState> state_{};
};

}  // namespace lockstep::optim::cuda

// What the executors of all devices have in common: the network and the order of its passes, the slots of parameters,
// times of layers, and what they refuse.
// Invariant: places of slots, and batches, that reach a device have the network's sizes.
// Used by the executors of nn/host and nn/cuda.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "nn/executor.hpp"
#include "nn/layer_times.hpp"
#include "nn/plan/parameter_slots.hpp"
#include "nn/plan/pass_plan.hpp"

namespace lockstep::nn {

class PlannedExecutor : public Executor {
 public:
  PlannedExecutor(const PlannedExecutor&) = delete;
  PlannedExecutor& operator=(const PlannedExecutor&) = delete;

  [[nodiscard]] std::span<const ArenaSlot> slots() const noexcept final { return layout().slots().all(); }
  [[nodiscard]] std::size_t arena_elements() const noexcept final { return layout().slots().n_elements(); }
  [[nodiscard]] std::vector<core::Slice> unit_reads() const final { return layout().slots().units().reads(); }
  void pack(int parameter, core::Slice rows, std::span<const float> logical, std::span<float> elements) const final {
    layout().pack(parameter, rows, logical, elements);
  }
  void unpack(int parameter, core::Slice rows, std::span<const float> elements, std::span<float> logical) const final {
    layout().unpack(parameter, rows, elements, logical);
  }
  void bind(std::span<const SlotPlace> places) final;
  [[nodiscard]] LayerTimes& layer_times() noexcept final { return times_; }

 protected:
  PlannedExecutor(const Network& network, const ExecutorOptions& options);

  [[nodiscard]] virtual const SlotLayout& layout() const noexcept = 0;
  /// By parameter; their addresses are null before bind().
  [[nodiscard]] std::span<const SlotPlace> places() const noexcept { return places_; }
  /// Whether parameters have memory in common, so that their values are there only between Hooks::need() and done().
  [[nodiscard]] bool has_shared_places() const noexcept { return has_shared_places_; }
  /// For a backward pass without samples: sets the gradients that the step completes to 0.
  void zero_completed(const BackwardStep& step, runtime::Stream& stream) const;
  /// Throws core::Error unless the batch fits. `fits_input`: whether its samples have the size of the network's input.
  void check(const data::Batch& batch, bool fits_input) const;

  const Network network_;
  const ExecutorOptions options_;
  const PassPlan plan_{plan_pass(network_)};
  LayerTimes times_{network_};
  bool has_ids_ = false, has_pixels_ = false;  ///< what samples are, instead of numbers
  std::size_t x_bytes_ = 0, y_bytes_ = 0;      ///< of a sample, and of its labels or targets

 private:
  std::vector<SlotPlace> places_;
  bool is_bound_ = false, has_shared_places_ = false;
};

}  // namespace lockstep::nn

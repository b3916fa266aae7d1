// The slots of parameters in the arenas, when each is complete, and when the units of the parameters are needed.
// Invariant: slots are ascending, whatever order backward completes them in. All devices place parameters here.
// Used by the parameter layouts of nn/host and nn/cuda, by their executors, and by their backward passes.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "nn/executor.hpp"
#include "nn/plan/pass_plan.hpp"
#include "nn/plan/unit_walk.hpp"

namespace lockstep::nn {

class ParameterSlots {
 public:
  ParameterSlots() = default;
  /// `slots`: those of plan.parameters, in the same order, with sizes but without offsets. `place`: as in
  /// ExecutorOptions.
  ParameterSlots(const Network& network, const PassPlan& plan, std::vector<ArenaSlot> slots,
                 const PlaceParameters& place);

  [[nodiscard]] std::span<const ArenaSlot> all() const noexcept { return slots_; }
  [[nodiscard]] const UnitWalk& units() const noexcept { return units_; }
  [[nodiscard]] std::size_t n_elements() const noexcept { return slots_.empty() ? 0 : slots_.back().slice.end(); }
  [[nodiscard]] std::size_t number(int parameter) const {
    return of_parameter_.at(static_cast<std::size_t>(parameter));
  }
  /// The slot of plan.parameters[planned].
  [[nodiscard]] const ArenaSlot& of_planned(std::size_t planned) const { return slots_[of_planned_.at(planned)]; }
  /// Returns the slots of all() to report once `completed`, a slice of plan.parameters, and all before it are complete:
  /// those that then have no incomplete slot before them, and were not reported earlier.
  [[nodiscard]] core::Slice reported_after(const core::Slice& completed) const {
    const std::size_t begin = n_leading_.at(completed.offset);
    return {begin, n_leading_.at(completed.end()) - begin};
  }

 private:
  std::vector<ArenaSlot> slots_{};
  UnitWalk units_{};
  std::vector<std::size_t> of_parameter_{};  ///< by parameter: its number in slots_
  std::vector<std::size_t> of_planned_{};    ///< the same in the order of the plan
  std::vector<std::size_t> n_leading_{0};    ///< slots without an incomplete one before them, by completed parameters
};

/// The layout of parameters on a device: their slots, and the order of elements in each.
class SlotLayout {
 public:
  virtual ~SlotLayout() = default;

  /// Empty until parameters have places.
  [[nodiscard]] const ParameterSlots& slots() const noexcept { return slots_; }
  [[nodiscard]] const ArenaSlot& slot_of(int parameter) const { return slots_.all()[slots_.number(parameter)]; }

  // As those of Executor.
  virtual void pack(int parameter, core::Slice rows, std::span<const float> logical,
                    std::span<float> elements) const = 0;
  virtual void unpack(int parameter, core::Slice rows, std::span<const float> elements,
                      std::span<float> logical) const = 0;

 protected:
  ParameterSlots slots_{};
};

}  // namespace lockstep::nn

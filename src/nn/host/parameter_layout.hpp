// The layout of each parameter in the arenas: blocked, in its slot.
// Invariant: layouts are chosen once, by the first program, and hold for all batch sizes.
// Used by nn/host: layers choose and read layouts, storage finds slots, the executor packs.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "nn/executor.hpp"
#include "nn/host/dnnl_primitives.hpp"
#include "nn/plan/pass_plan.hpp"

namespace lockstep::nn::host {

class ParameterLayout {
 public:
  explicit ParameterLayout(const Network& network) : descs_(network.parameters().size()) {}

  /// Empty before set().
  [[nodiscard]] const std::optional<Desc>& find(int parameter) const;
  /// `desc`: its dimensions, read in order, are PyTorch's elements in order.
  void set(int parameter, Desc desc);

  /// Places slots in the order in which their gradients complete, once all layouts are set.
  void place(const PassPlan& plan);
  [[nodiscard]] std::span<const ArenaSlot> slots() const noexcept { return slots_; }
  [[nodiscard]] std::size_t slot_number(int parameter) const;  ///< in slots()
  [[nodiscard]] const ArenaSlot& slot_of(int parameter) const { return slots_[slot_number(parameter)]; }
  [[nodiscard]] std::size_t n_elements() const noexcept { return n_elements_; }

  void pack(int parameter, core::Slice rows, std::span<const float> logical, std::span<float> elements) const;
  void unpack(int parameter, core::Slice rows, std::span<const float> elements, std::span<float> logical) const;

 private:
  std::vector<std::optional<Desc>> descs_;
  std::vector<ArenaSlot> slots_{};
  std::vector<std::size_t> slot_of_parameter_{};
  std::size_t n_elements_ = 0;
};

/// Elements in order: the last dimension varies fastest.
[[nodiscard]] Desc plain_desc(const Dims& dims, dnnl::memory::data_type type = dnnl::memory::data_type::f32);
/// The number of elements, including padding.
[[nodiscard]] std::size_t n_physical(const Desc& desc);

}  // namespace lockstep::nn::host

// The layout of each parameter in the arenas: blocked, in its slot.
// Invariant: layouts are chosen once, by the first program, and hold for all batch sizes.
// Used by nn/host: layers choose and read layouts, storage finds slots, the executor packs.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "nn/executor.hpp"
#include "nn/host/dnnl_primitives.hpp"
#include "nn/plan/parameter_slots.hpp"

namespace lockstep::nn::host {

class ParameterLayout final : public SlotLayout {
 public:
  explicit ParameterLayout(const Network& network) : descs_(network.parameters().size()) {}

  /// Empty before choose().
  [[nodiscard]] const std::optional<Desc>& find(int parameter) const;
  /// Sets the layout, unless it is set already: by an earlier program, or by another layer that reads the parameter.
  /// `desc`: its dimensions, read in order, are PyTorch's elements in order.
  void choose(int parameter, const Desc& desc);

  /// Makes the slots, once all layouts are set. `place`: as in ExecutorOptions.
  void place(const Network& network, const PassPlan& plan, const PlaceParameters& place);

  void pack(int parameter, core::Slice rows, std::span<const float> logical, std::span<float> elements) const override;
  void unpack(int parameter, core::Slice rows, std::span<const float> elements,
              std::span<float> logical) const override;

 private:
  std::vector<std::optional<Desc>> descs_;
};

/// Elements in order: the last dimension varies fastest.
[[nodiscard]] Desc plain_desc(const Dims& dims, dnnl::memory::data_type type = dnnl::memory::data_type::f32);
/// The number of elements, including padding.
[[nodiscard]] std::size_t n_physical(const Desc& desc);

}  // namespace lockstep::nn::host

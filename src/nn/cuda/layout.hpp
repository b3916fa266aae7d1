// The layout of values and parameters in a GPU's memory: channels innermost, padded to a multiple of 8.
// Invariant: padding is 0 and stays 0, in activations, parameters and gradients; layouts depend on the network alone.
// Used by nn/cuda: layers read layouts, the executor packs parameters.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "nn/executor.hpp"
#include "nn/plan/parameter_slots.hpp"

namespace lockstep::nn::cuda {

/// The layout of one sample of a value: channel c at position p is at p * padded_channels + c. Features are channels of
/// one position, rows of features are positions. Flattened images stay as they are, because only their readers need to
/// know.
struct ValueLayout {
  std::size_t n_positions = 1;
  std::size_t n_channels = 1;
  std::size_t padded_channels = 8;
  bool has_rows = false;  ///< positions vary slowest in the logical order; those of images vary fastest

  [[nodiscard]] std::size_t n_elements() const noexcept { return n_positions * padded_channels; }
  /// The rows that layers of features see in a sample.
  [[nodiscard]] std::size_t n_rows() const noexcept { return has_rows ? n_positions : 1; }
};

/// The layout of each node's output. Throws core::Error (usage) naming a node that needs flattened images in their
/// logical order. Only linear layers, elementwise ones and the loss of one position accept another order.
[[nodiscard]] std::vector<ValueLayout> layouts_of(const Network& network);

/// Throws core::Error (usage) naming the node if `n` samples of the value have more packs than kernels can index
/// (n_indices in kernels/math.hpp).
void require_indices(const Node& node, const ValueLayout& layout, std::uint64_t n);

/// The places of parameters in the arenas. Rows are output channels. Vectors, and matrices padded only after their end,
/// have rows of one element.
class ParameterLayout final : public SlotLayout {
 public:
  /// `place`: as in ExecutorOptions.
  ParameterLayout(const Network& network, const PassPlan& plan, const PlaceParameters& place);

  void pack(int parameter, core::Slice rows, std::span<const float> logical, std::span<float> elements) const override;
  void unpack(int parameter, core::Slice rows, std::span<const float> elements,
              std::span<float> logical) const override;

 private:
  static std::size_t index(int parameter) { return static_cast<std::size_t>(parameter); }

  /// By parameter: a row has the layout of a sample of the value it multiplies, or is one element.
  std::vector<ValueLayout> rows_;
};

}  // namespace lockstep::nn::cuda

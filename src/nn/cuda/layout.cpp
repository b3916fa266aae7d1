#include "nn/cuda/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/slice.hpp"
#include "nn/cuda/kernels/math.hpp"

namespace lockstep::nn::cuda {
namespace {

constexpr std::size_t channel_multiple = 8;
constexpr ValueLayout one_element{1, 1, 1};

ValueLayout plain(const Shape& shape) {
  if (shape.size() == 2) return {shape[0], shape[1], core::round_up(shape[1], channel_multiple), true};
  const std::size_t n_positions = shape.size() == 3 ? shape[1] * shape[2] : 1;
  return {n_positions, shape[0], core::round_up(shape[0], channel_multiple)};
}

// The layout of a row of the node's weight.
ValueLayout row_layout(const Network& network, std::span<const ValueLayout> values, const Node& node) {
  const ValueLayout& input = values[static_cast<std::size_t>(node.inputs[0].node)];
  if (const auto* const conv = std::get_if<Conv>(&node.layer))
    return {conv->kernel * conv->kernel, input.n_channels, input.padded_channels};
  if (std::holds_alternative<Linear>(node.layer))
    return {input.n_positions / input.n_rows(), input.n_channels, input.padded_channels};
  const Shape& shape = network.parameters()[static_cast<std::size_t>(node.parameters[0])].shape;
  return {1, shape.back(), core::round_up(shape.back(), channel_multiple)};
}

/// Whether the arena has the elements of rows in PyTorch's order, without padding between them.
bool is_flat(const ValueLayout& row) { return row.n_positions == 1 && row.n_channels == row.padded_channels; }

/// `row`: row_layout(), or one_element for a vector.
ArenaSlot unplaced_slot(const Parameter& parameter, int number, const ValueLayout& row) {
  const std::size_t row_elements = row.n_elements();
  ArenaSlot slot{.parameter = number,
                 .slice = {.count = core::round_up(core::round_up(parameter.shape[0], channel_multiple) * row_elements,
                                                   slot_multiple)},
                 .block = slot_multiple,
                 .block_rows = slot_multiple,
                 .n_rows = static_cast<std::size_t>(n_elements(parameter.shape)),
                 .n_inner = 1};
  if (is_flat(row)) return slot;
  slot.block_rows = row_elements % slot_multiple == 0 ? 1 : 2;  // so that blocks begin where slices may
  slot.block = slot.block_rows * row_elements;
  slot.n_rows = parameter.shape[0];
  slot.n_inner = row.n_positions * row.n_channels;
  return slot;
}

}  // namespace

std::vector<ValueLayout> layouts_of(const Network& network) {
  std::vector<ValueLayout> layouts;
  for (const Node& node : network.nodes()) {
    const ValueLayout* const input =
        node.inputs.empty() ? nullptr : &layouts[static_cast<std::size_t>(node.inputs[0].node)];
    const bool reads_flat = input != nullptr && network.shape(node.inputs[0]).size() == 1 && input->n_positions > 1;
    const bool is_elementwise = traits(node.layer).is_elementwise;
    if (std::holds_alternative<Flatten>(node.layer) || (reads_flat && is_elementwise)) {
      layouts.push_back(*input);
      continue;
    }
    if (reads_flat && !std::holds_alternative<Linear>(node.layer))
      core::fail_usage(
          {.what = fmt::format("{} reads flattened images, which this version does not support on GPUs", node.name),
           .where = "the model",
           .expected = "a linear layer after the flattened images",
           .fix = "--device host"});
    layouts.push_back(plain(node.output));
  }
  return layouts;
}

void require_indices(const Node& node, const ValueLayout& layout, std::uint64_t n) {
  const std::uint64_t of_sample = layout.n_elements() / pack_channels, most = (n_indices - 1) / of_sample;
  if (n <= most) return;
  core::fail_usage({.what = fmt::format("{} samples at a time, in layer '{}'", n, node.name),
                    .where = "batch",
                    .expected = fmt::format("at most {}: kernels count in 32 bits", most),
                    .fix = "use --accumulate, a smaller --batch, or more ranks"});
}

ParameterLayout::ParameterLayout(const Network& network, const PassPlan& plan, const PlaceParameters& place)
    : rows_(network.parameters().size()) {
  const std::vector<ValueLayout> values = layouts_of(network);
  std::vector<ArenaSlot> slots;
  for (const auto& [number, node] : plan.parameters) {
    const Parameter& parameter = network.parameters()[index(number)];
    const bool is_vector = parameter.shape.size() == 1;
    const ValueLayout row = is_vector ? one_element : row_layout(network, values, network.nodes()[node]);
    rows_[index(number)] = is_flat(row) ? one_element : row;
    slots.push_back(unplaced_slot(parameter, number, row));
  }
  slots_ = ParameterSlots{network, plan, std::move(slots), place};
}

void ParameterLayout::pack(int parameter, core::Slice rows, std::span<const float> logical,
                           std::span<float> elements) const {
  const ValueLayout& row = rows_.at(index(parameter));
  core::require(logical.size() == rows.count * row.n_positions * row.n_channels, "rows have all of their elements");
  std::ranges::fill(elements, 0.0F);
  if (row.n_elements() == 1) {
    std::ranges::copy(logical, elements.begin());
    return;
  }
  std::size_t i = 0;
  for (std::size_t r = 0; r < rows.count; ++r)
    for (std::size_t c = 0; c < row.n_channels; ++c)
      for (std::size_t p = 0; p < row.n_positions; ++p)
        elements[r * row.n_elements() + p * row.padded_channels + c] = logical[i++];
}

void ParameterLayout::unpack(int parameter, core::Slice rows, std::span<const float> elements,
                             std::span<float> logical) const {
  const ValueLayout& row = rows_.at(index(parameter));
  core::require(logical.size() == rows.count * row.n_positions * row.n_channels, "rows have all of their elements");
  if (row.n_elements() == 1) {
    std::ranges::copy(elements.first(logical.size()), logical.begin());
    return;
  }
  std::size_t i = 0;
  for (std::size_t r = 0; r < rows.count; ++r)
    for (std::size_t c = 0; c < row.n_channels; ++c)
      for (std::size_t p = 0; p < row.n_positions; ++p)
        logical[i++] = elements[r * row.n_elements() + p * row.padded_channels + c];
}

}  // namespace lockstep::nn::cuda

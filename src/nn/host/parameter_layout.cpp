#include "nn/host/parameter_layout.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.hpp"

namespace lockstep::nn::host {
namespace {

constexpr std::size_t most_dimensions = 4;

/// Cuts along the dimension that alone varies slowest; if there is none, the whole tensor is one block.
ArenaSlot find_cut(const Desc& desc) {
  const Dims dims = dims_of(desc);
  const Blocking blocking = blocking_of(desc);
  ArenaSlot cut{.block = n_physical(desc), .block_rows = static_cast<std::size_t>(dims[0])};
  std::size_t dimension = 0;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const auto rows = static_cast<std::size_t>(blocking.blocks[d]);
    const std::size_t n_blocks = (static_cast<std::size_t>(dims[d]) + rows - 1) / rows;
    const auto block = static_cast<std::size_t>(blocking.strides[d]);
    if (n_blocks <= 1 || block * n_blocks != n_physical(desc)) continue;
    cut = {.block = block, .block_rows = rows};
    dimension = d;
    break;
  }
  cut.n_rows = static_cast<std::size_t>(dims[dimension]);
  cut.n_inner = 1;
  for (std::size_t d = dimension + 1; d < dims.size(); ++d) cut.n_inner *= static_cast<std::size_t>(dims[d]);
  return cut;
}

/// The places of elements `range` of dimension `d`, relative to the first; an element's place is the sum over its
/// dimensions.
std::vector<std::size_t> places_along(const Blocking& blocking, std::size_t d, core::Slice range) {
  const auto place = [&](std::size_t i) {
    const auto block = static_cast<std::size_t>(blocking.blocks[d]);
    std::size_t at = i / block * static_cast<std::size_t>(blocking.strides[d]), within = i % block, step = 1;
    for (std::size_t k = blocking.inner.size(); k-- > 0;) {
      const auto size = static_cast<std::size_t>(blocking.inner[k]);
      if (static_cast<std::size_t>(blocking.of[k]) == d) {
        at += within % size * step;
        within /= size;
      }
      step *= size;
    }
    return at;
  };
  std::vector<std::size_t> places(range.count);
  for (std::size_t i = 0; i < range.count; ++i) places[i] = place(range.offset + i) - place(range.offset);
  return places;
}

/// Calls copy(i, place) for all `n` elements i of `rows` in logical order; there are `n_places` places.
template <class Copy>
void for_elements(const Desc& desc, const ArenaSlot& slot, core::Slice rows, std::size_t n, std::size_t n_places,
                  const Copy& copy) {
  if (rows.empty()) return;  // padding
  const Dims dims = dims_of(desc);
  const std::size_t n_blocks = (rows.count + slot.block_rows - 1) / slot.block_rows;
  core::require(rows.offset % slot.block_rows == 0 && rows.end() <= slot.n_rows, "rows are whole blocks of their slot");
  core::require(n_places >= n_blocks * slot.block, "the arena part has room for the blocks of the rows");
  core::require(n == nn::n_elements({dims.begin(), dims.end()}) / slot.n_rows * rows.count, "rows have their elements");
  const Blocking blocking = blocking_of(desc);
  std::array<std::vector<std::size_t>, most_dimensions> places;
  places.fill({0});
  std::size_t n_inner = 1;
  for (std::size_t d = dims.size(), at = most_dimensions; d-- > 0;) {
    const auto size = static_cast<std::size_t>(dims[d]);
    const bool is_cut = n_inner == slot.n_inner && size == slot.n_rows;
    places[--at] = places_along(blocking, d, is_cut ? rows : core::Slice{0, size});
    n_inner = is_cut ? 0 : n_inner * size;  // 0: no later dimension is cut
  }
  std::size_t i = 0;
  for (const std::size_t a : places[0])
    for (const std::size_t b : places[1])
      for (const std::size_t c : places[2])
        for (const std::size_t d : places[3]) copy(i++, a + b + c + d);
}

}  // namespace

Desc plain_desc(const Dims& dims, dnnl::memory::data_type type) {
  using Tag = dnnl::memory::format_tag;
  constexpr Tag tags[] = {Tag::a, Tag::ab, Tag::abc, Tag::abcd};
  core::require(!dims.empty() && dims.size() <= std::size(tags), "tensors have one to four dimensions");
  return {dims, type, tags[dims.size() - 1]};
}

std::size_t n_physical(const Desc& desc) { return desc.get_size() / dnnl::memory::data_type_size(type_of(desc)); }

const std::optional<Desc>& ParameterLayout::find(int parameter) const {
  return descs_.at(static_cast<std::size_t>(parameter));
}

void ParameterLayout::choose(int parameter, const Desc& desc) {
  std::optional<Desc>& chosen = descs_.at(static_cast<std::size_t>(parameter));
  if (!chosen) chosen = desc;
}

void ParameterLayout::place(const Network& network, const PassPlan& plan, const PlaceParameters& place) {
  std::vector<ArenaSlot> slots;
  for (const auto& [parameter, node] : plan.parameters) {
    const auto& desc = find(parameter);
    core::require(desc.has_value(), "every parameter has a layout");
    ArenaSlot slot = find_cut(*desc);
    slot.parameter = parameter;
    slot.slice.count = (n_physical(*desc) + slot_multiple - 1) / slot_multiple * slot_multiple;
    slots.push_back(slot);
  }
  slots_ = ParameterSlots{network, plan, std::move(slots), place};
}

void ParameterLayout::pack(int parameter, core::Slice rows, std::span<const float> logical,
                           std::span<float> elements) const {
  std::fill(elements.begin(), elements.end(), 0.0f);
  for_elements(*find(parameter), slot_of(parameter), rows, logical.size(), elements.size(),
               [&](std::size_t i, std::size_t place) { elements[place] = logical[i]; });
}

void ParameterLayout::unpack(int parameter, core::Slice rows, std::span<const float> elements,
                             std::span<float> logical) const {
  for_elements(*find(parameter), slot_of(parameter), rows, logical.size(), elements.size(),
               [&](std::size_t i, std::size_t place) { logical[i] = elements[place]; });
}

}  // namespace lockstep::nn::host

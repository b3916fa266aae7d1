#include "nn/host/parameter_layout.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"

namespace lockstep::nn::host {
namespace {

constexpr std::size_t slot_multiple = 16;

/// oneDNN zeroes the padding of whatever memory it is given, so never give it memory that may only be read.
void reorder(const dnnl::engine& engine, const Desc& from, float* source, const Desc& to, float* target) {
  dnnl::memory in{from, engine, source};
  dnnl::memory out{to, engine, target};
  dnnl::stream stream{engine};
  dnnl::reorder{in, out}.execute(stream, in, out);
  stream.wait();
}

struct Cut {
  std::size_t block = 0;
  std::size_t block_rows = 0;
  int dimension = 0;
};

/// By the dimension that varies slowest; as a whole where it is not the only one there.
Cut find_cut(const Desc& desc) {
  const Dims dims = dims_of(desc);
  const Blocking blocking = blocking_of(desc);
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const auto rows = static_cast<std::size_t>(blocking.blocks[d]);
    const std::size_t n_blocks = (static_cast<std::size_t>(dims[d]) + rows - 1) / rows;
    const auto block = static_cast<std::size_t>(blocking.strides[d]);
    if (n_blocks > 1 && block * n_blocks == n_physical(desc)) return {block, rows, static_cast<int>(d)};
  }
  return {n_physical(desc), static_cast<std::size_t>(dims[0]), 0};
}

}  // namespace

Desc plain_desc(const Dims& dims, dnnl::memory::data_type type) {
  using Tag = dnnl::memory::format_tag;
  constexpr Tag tags[] = {Tag::a, Tag::ab, Tag::abc, Tag::abcd};
  core::require(!dims.empty() && dims.size() <= std::size(tags), "tensors have one to four dimensions");
  return {dims, type, tags[dims.size() - 1]};
}

std::size_t n_physical(const Desc& desc) { return desc.get_size() / dnnl::memory::data_type_size(type_of(desc)); }

ParameterLayout::ParameterLayout(const Network& network, dnnl::engine engine)
    : engine_{std::move(engine)}, descs_(network.parameters().size()) {
  for (const Parameter& parameter : network.parameters()) n_logical_.push_back(nn::n_elements(parameter.shape));
}

const std::optional<Desc>& ParameterLayout::find(int parameter) const {
  return descs_.at(static_cast<std::size_t>(parameter));
}

void ParameterLayout::set(int parameter, Desc desc) {
  descs_.at(static_cast<std::size_t>(parameter)) = std::move(desc);
}

void ParameterLayout::place(const Network& network) {
  slot_of_parameter_.assign(descs_.size(), 0);
  for (auto node = network.nodes().rbegin(); node != network.nodes().rend(); ++node) {
    for (const int parameter : node->parameters) {
      const auto& desc = find(parameter);
      core::require(desc.has_value(), "every parameter has a layout");
      const std::size_t n = (n_physical(*desc) + slot_multiple - 1) / slot_multiple * slot_multiple;
      slot_of_parameter_[static_cast<std::size_t>(parameter)] = slots_.size();
      const Cut cut = find_cut(*desc);
      slots_.push_back({parameter, {n_elements_, n}, cut.block, cut.block_rows, cut.dimension});
      n_elements_ += n;
    }
  }
}

std::size_t ParameterLayout::slot_number(int parameter) const {
  return slot_of_parameter_.at(static_cast<std::size_t>(parameter));
}

Desc ParameterLayout::logical_desc(int parameter, std::size_t n_logical, std::size_t n_slot) const {
  core::require(n_slot == slot_of(parameter).slice.count, "a slot has its elements");
  core::require(n_logical == n_logical_[static_cast<std::size_t>(parameter)], "a parameter has its shape's elements");
  return plain_desc(dims_of(*find(parameter)));
}

void ParameterLayout::pack(int parameter, std::span<const float> logical, std::span<float> slot) const {
  const Desc plain = logical_desc(parameter, logical.size(), slot.size());
  const Desc& blocked = *find(parameter);
  std::fill(slot.begin(), slot.end(), 0.0f);
  if (plain == blocked) {
    std::copy(logical.begin(), logical.end(), slot.begin());
  } else {
    reorder(engine_, plain, const_cast<float*>(logical.data()), blocked, slot.data());
  }
}

void ParameterLayout::unpack(int parameter, std::span<const float> slot, std::span<float> logical) const {
  const Desc plain = logical_desc(parameter, logical.size(), slot.size());
  const Desc& blocked = *find(parameter);
  if (plain == blocked) {
    std::copy_n(slot.begin(), logical.size(), logical.begin());
  } else {
    std::vector<float> copy(slot.begin(), slot.end());
    reorder(engine_, blocked, copy.data(), plain, logical.data());
  }
}

}  // namespace lockstep::nn::host

#include "nn/host/layers.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace lockstep::nn::host {

Builder::Builder(const Common& common, Storage& storage_, std::uint64_t n_, bool is_training_)
    : Common{common},
      storage{storage_},
      n{n_},
      is_training{is_training_},
      type{options.precision == Precision::bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32} {}

Tensor Builder::make(const Desc& desc) { return {desc, make_bytes(desc.get_size())}; }

Place Builder::make_bytes(std::size_t n_bytes) {
  const Place place = storage.add(n_bytes);
  storage.use(place, time);
  return place;
}

const Tensor& Builder::use(const Tensor& tensor) {
  storage.use(tensor.place, time);
  return tensor;
}

Desc Builder::samples(const Shape& shape) const { return plain_desc(with_batch(n, shape), type); }

Tensor Builder::parameter(int parameter) const {
  return {*parameters.find(parameter), {Space::parameters, static_cast<std::size_t>(parameter), 0}};
}

Tensor Builder::gradient(int parameter) const {
  return {*parameters.find(parameter), {Space::gradients, static_cast<std::size_t>(parameter), 0}};
}

Primitive Builder::primitive(const dnnl::primitive_desc_base& described, Arguments arguments,
                             Primitive::Arguments more) {
  core::require(static_cast<bool>(described), "oneDNN has this primitive");
  if (is_reference(described)) note_slow(described);
  for (const auto& [name, tensor] : arguments)
    if (!tensor.desc.is_zero()) more.emplace_back(name, storage.memory(tensor.desc, tensor.place, time));
  const Desc scratchpad = described.scratchpad_desc();
  if (scratchpad.get_size() > 0)
    more.emplace_back(DNNL_ARG_SCRATCHPAD, storage.memory(scratchpad, make_bytes(scratchpad.get_size()), time));
  return {described.get(), more};
}

void Builder::note_slow(const dnnl::primitive_desc_base& described) {
  core::require(time < plan.time_of_loss() || time > plan.time_of_loss_gradient(),
                "the planned node is a layer, not the loss");
  const bool is_forward = time < plan.time_of_loss();
  const int node = is_forward ? time : plan.time_of_backward(0) - time;
  slow_layers.insert(fmt::format("{} ({}, {})", network.nodes()[static_cast<std::size_t>(node)].name,
                                 is_forward ? "forward" : "backward", described.impl_info_str()));
}

Tensor Builder::reordered(const Tensor& tensor, const Desc& desc, std::vector<Primitive>& primitives) {
  // Equal descriptions may differ in the stride of a single channel, which oneDNN still compares.
  if (tensor.desc == desc) return {desc, tensor.place};
  const Tensor copy = make(desc);
  reorder(tensor, copy, primitives);
  return copy;
}

void Builder::reorder(const Tensor& from, const Tensor& to, std::vector<Primitive>& primitives) {
  const dnnl::reorder::primitive_desc described{engine, from.desc, engine, to.desc, make_attributes()};
  Primitive::Arguments arguments{{DNNL_ARG_FROM, storage.memory(from.desc, from.place, time)},
                                 {DNNL_ARG_TO, storage.memory(to.desc, to.place, time)}};
  const Desc scratchpad = described.scratchpad_desc();
  if (scratchpad.get_size() > 0)
    arguments.emplace_back(DNNL_ARG_SCRATCHPAD, storage.memory(scratchpad, make_bytes(scratchpad.get_size()), time));
  primitives.emplace_back(described.get(), arguments, true);
}

bool Builder::is_read_by_loss(std::size_t node) const {
  const std::vector<Node>& nodes = network.nodes();
  const bool has_log_softmax = std::holds_alternative<LogSoftmax>(nodes.back().layer);
  const std::size_t last = nodes.size() - 1;
  return node == last || (has_log_softmax && node + 1 == last);
}

Tensor Builder::add_up(const Tensor& a, const Tensor& b, std::size_t) {
  use(a);
  use(b);
  if (may_overwrite(b)) return b;
  return may_overwrite(a) ? a : make(a.desc);
}

bool Builder::may_overwrite(const Tensor& gradient) const {
  const auto found = n_pending_.find(gradient.place.index);
  return found == n_pending_.end() || found->second == 0;
}

ImageLayout image_layout(const Desc& desc) {
  using Tag = dnnl::memory::format_tag;
  const Dims dims = dims_of(desc);
  core::require(dims.size() == 4, "an image has channels, rows and columns");
  const auto n_channels = static_cast<std::size_t>(dims[1]);
  const auto n_positions = static_cast<std::size_t>(dims[2] * dims[3]);
  const std::pair<Tag, std::size_t> layouts[] = {
      {Tag::aBcd16b, 16}, {Tag::aBcd8b, 8}, {Tag::aBcd4b, 4}, {Tag::abcd, 1}, {Tag::acdb, n_channels}};
  for (const auto& [tag, block] : layouts)
    if (desc == Desc{dims, type_of(desc), tag})
      return {n_channels, n_positions, block, (n_channels + block - 1) / block};
  core::fail_system("oneDNN chose a layout of images that is not known here");
}

bool computes_bf16(const dnnl::engine& engine) {
  const Desc images{{1, 16, 4, 4}, dnnl::memory::data_type::bf16, dnnl::memory::format_tag::any};
  const Desc weights{{16, 16, 1, 1}, dnnl::memory::data_type::bf16, dnnl::memory::format_tag::any};
  const auto found = describe_conv(engine, images, weights, {}, images, {{1, 1}, {1, 1}, {0, 0}, {0, 0}});
  return found && !is_reference(found);
}

Dims with_batch(std::uint64_t n, const Shape& shape) {
  Dims dims{static_cast<dnnl::memory::dim>(n * n_sample_rows(shape))};
  dims.insert(dims.end(), shape.size() == 2 ? shape.begin() + 1 : shape.begin(), shape.end());
  return dims;
}

}  // namespace lockstep::nn::host

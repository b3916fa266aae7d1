// Layers that oneDNN does not compute in bf16 on this processor: values are stored in bf16 and computed in float32.
#include <functional>
#include <utility>

#include "core/error.hpp"
#include "nn/host/elements.hpp"
#include "nn/host/layers.hpp"

namespace lockstep::nn::host {
namespace {

using dnnl::memory;

bool is_bf16(const Tensor& tensor) { return type_of(tensor.desc) == memory::data_type::bf16; }

/// The same layout with another element type.
Desc as_type(const Desc& desc, memory::data_type type) {
  using Tag = memory::format_tag;
  const Dims dims = dims_of(desc);
  if (dims.size() == 4) {
    for (const Tag tag : {Tag::abcd, Tag::acdb, Tag::aBcd4b, Tag::aBcd8b, Tag::aBcd16b})
      if (desc == Desc{dims, type_of(desc), tag}) return {dims, type, tag};
  }
  core::require(desc == plain_desc(dims, type_of(desc)), "the layout is a known one of images, or plain");
  return plain_desc(dims, type);
}

/// A tensor of the network and its float32 copy, whose elements exist during one pass of one layer.
struct Copy {
  Tensor kept{}, floats{};
};

void widen(const Storage& storage, const Copy& copy) { widen(storage, copy.kept, copy.floats.place); }

void round(const Storage& storage, const Copy& copy) { round(storage, copy.floats.place, copy.kept); }

/// Provides a builder for a layer that works in float32.
class FloatBuilder {
 public:
  explicit FloatBuilder(Builder& builder) : builder_{builder}, type_{builder.type} {
    builder_.type = memory::data_type::f32;
  }
  ~FloatBuilder() { builder_.type = type_; }
  FloatBuilder(const FloatBuilder&) = delete;
  FloatBuilder& operator=(const FloatBuilder&) = delete;

 private:
  Builder& builder_;
  memory::data_type type_;
};

class InFloatsLayer final : public HostLayer {
 public:
  InFloatsLayer(const Planned& planned, const MakeHostLayer& make) : storage_{planned.builder.storage} {
    Builder& builder = planned.builder;
    Planned in_floats{builder, planned.node, planned.index, planned.inputs};
    for (Tensor& input : in_floats.inputs) {
      if (!is_bf16(input)) continue;
      inputs_.push_back({builder.use(input), widened(builder, input)});
      input = inputs_.back().floats;
    }
    {
      const FloatBuilder lent{builder};
      layer_ = make(in_floats);
    }
    output_ = layer_->output();
    const bool stays = std::holds_alternative<Linear>(planned.node.layer) && builder.is_read_by_loss(planned.index);
    if (stays) return;
    output_.desc = as_type(output_.desc, builder.type);
    output_.place = builder.make_bytes(output_.desc.get_size());
    rounded_ = {output_, layer_->output()};
    storage_.forget_between(rounded_->floats.place);
  }

  void forward(PassContext& pass) override {
    for (const Copy& input : inputs_) widen(storage_, input);
    layer_->forward(pass);
    if (rounded_) round(storage_, *rounded_);
  }

  std::size_t n_gradients_taken() const override { return layer_->n_gradients_taken(); }

  std::vector<Tensor> plan_backward(Builder& builder, std::span<const Tensor> gradients) override {
    std::vector<Tensor> in_floats{gradients.begin(), gradients.end()};
    for (Tensor& gradient : in_floats) {
      if (!is_bf16(gradient)) continue;
      gradients_.push_back({builder.use(gradient), widened(builder, gradient)});
      gradient = gradients_.back().floats;
    }
    std::vector<Tensor> results;
    {
      const FloatBuilder lent{builder};
      results = layer_->plan_backward(builder, in_floats);
    }
    for (const Copy& input : inputs_) read_again(builder, input);
    if (rounded_) read_again(builder, *rounded_);
    for (Tensor& result : results) {
      if (result.desc.is_zero()) continue;
      const Desc desc = as_type(result.desc, builder.type);
      const bool is_in_place = desc == gradients[0].desc && builder.may_overwrite(gradients[0]);
      const Tensor kept = is_in_place && results.size() == 1 ? gradients[0] : builder.make(desc);
      results_.push_back({kept, std::exchange(result, kept)});
    }
    return results;
  }

  void backward(PassContext& pass) override {
    for (const Copy& gradient : gradients_) widen(storage_, gradient);
    for (const Copy& copy : read_again_) widen(storage_, copy);
    layer_->backward(pass);
    for (const Copy& result : results_) round(storage_, result);
  }

 private:
  Tensor widened(Builder& builder, const Tensor& kept) const {
    const Tensor floats = builder.make(as_type(kept.desc, memory::data_type::f32));
    storage_.forget_between(floats.place);
    return floats;
  }

  /// Widens `copy` again if the layer's backward pass reads an input or the output of its forward pass.
  void read_again(Builder& builder, const Copy& copy) {
    if (!storage_.is_used(copy.floats.place, builder.time)) return;
    builder.use(copy.kept);
    read_again_.push_back(copy);
  }

  Storage& storage_;
  std::unique_ptr<HostLayer> layer_{};
  std::vector<Copy> inputs_{}, gradients_{}, results_{}, read_again_{};
  std::optional<Copy> rounded_{};  ///< the output, unless the loss reads it as it is
};

}  // namespace

std::unique_ptr<HostLayer> make_by_onednn(const Planned& planned, const MakeHostLayer& make) {
  if (!planned.builder.computes_in_floats) return make(planned);
  return std::make_unique<InFloatsLayer>(planned, make);
}

}  // namespace lockstep::nn::host

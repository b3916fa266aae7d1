#include "nn/host/elements.hpp"
#include "nn/host/layers.hpp"

namespace lockstep::nn::host {
namespace {

/// Passes samples on unchanged or rounded.
class InputLayer final : public HostLayer {
 public:
  InputLayer(const Planned& planned, bool has_ids) : storage_{planned.builder.storage} {
    Builder& builder = planned.builder;
    output_ = {builder.samples(planned.node.output), given_};
    is_rounded_ = !has_ids && builder.type == dnnl::memory::data_type::bf16;
    if (is_rounded_) output_ = builder.make(output_.desc);
  }
  void forward(PassContext&) override {
    if (is_rounded_) round(storage_, given_, output_);
  }
  std::vector<Tensor> plan_backward(Builder&, std::span<const Tensor>) override { return {}; }
  void backward(PassContext&) override {}

 private:
  static constexpr Place given_{Space::input, 0, 0};
  const Storage& storage_;
  bool is_rounded_ = false;
};

}  // namespace

std::unique_ptr<HostLayer> make_layer(const Planned& planned, const Input&) {
  return std::make_unique<InputLayer>(planned, false);
}
std::unique_ptr<HostLayer> make_layer(const Planned& planned, const Ids&) {
  return std::make_unique<InputLayer>(planned, true);
}

}  // namespace lockstep::nn::host

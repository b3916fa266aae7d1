#include "nn/host/elements.hpp"
#include "nn/host/layers.hpp"

namespace lockstep::nn::host {
namespace {

/// Both inputs get the same gradient: the output's own, unless a ReLU changes it.
class AddLayer final : public NodeLayer {
 public:
  AddLayer(const Planned& planned, const Add& layer)
      : NodeLayer{planned}, has_relu_{layer.has_relu}, second_desc_{planned.inputs[1].desc} {
    Builder& builder = planned.builder;
    b_ = builder.reordered(builder.use(planned.inputs[1]), input_.desc, before_).place;
    output_ = builder.make(input_.desc);
  }

  void forward(PassContext& pass) override {
    run_all(before_, pass.run);
    with_type(output_, [&]<class T>(T) {
      const auto* const a = storage_.at<const T>(input_.place);
      const auto* const b = storage_.at<const T>(b_);
      auto* const out = storage_.at<T>(output_.place);
      const auto add = has_relu_ ? loops().of<T>().add_relu : loops().of<T>().add;
      for_elements(output_,
                   [&](std::size_t begin, std::size_t end) { add(a + begin, b + begin, out + begin, end - begin); });
    });
  }

  std::size_t n_gradients_taken() const override { return has_relu_ ? 2 : 1; }

  std::vector<Tensor> plan_backward(Builder& builder, std::span<const Tensor> gradients) override {
    for (const Tensor& gradient : gradients) gradients_.push_back(builder.use(gradient).place);
    result_ = gradients[0];
    if (has_relu_) {
      builder.use(output_);
      if (!builder.may_overwrite(result_)) result_ = builder.make(output_.desc);
    }
    return {result_, builder.reordered(result_, second_desc_, after_)};
  }

  void backward(PassContext& pass) override {
    if (has_relu_) relu_backward(storage_, output_, gradients_, result_);
    run_all(after_, pass.run);
  }

 private:
  bool has_relu_;
  Desc second_desc_;
  Place b_{};
  std::vector<Place> gradients_{};
  Tensor result_{};
  std::vector<Primitive> before_{};  ///< for inputs with another layout
  std::vector<Primitive> after_{};
};

}  // namespace

std::unique_ptr<HostLayer> make_layer(const Planned& planned, const Add& layer) {
  return std::make_unique<AddLayer>(planned, layer);
}

}  // namespace lockstep::nn::host

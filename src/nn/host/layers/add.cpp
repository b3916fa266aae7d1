#include "nn/host/kernel.hpp"
#include "nn/host/loops.hpp"
#include "nn/host/parallel.hpp"

namespace lockstep::nn::host {
namespace {

/// Both inputs get the same gradient, which is the output's own where no ReLU changes it.
class AddKernel final : public Kernel {
 public:
  AddKernel(const Planned& planned, const Add& layer)
      : storage_{planned.builder.storage}, has_relu_{layer.has_relu}, second_desc_{planned.inputs[1].desc} {
    Builder& builder = planned.builder;
    a_ = builder.use(planned.inputs[0]).place;
    b_ = builder.reordered(builder.use(planned.inputs[1]), planned.inputs[0].desc, before_).place;
    output_ = builder.make(planned.inputs[0].desc);
  }

  void forward(Call& call) override {
    run_all(before_, call.run);
    const auto* const a = storage_.at<const float>(a_);
    const auto* const b = storage_.at<const float>(b_);
    auto* const out = storage_.at<float>(output_.place);
    const auto add = has_relu_ ? loops().add_relu : loops().add;
    for_parts(n_floats(output_.desc), least_elements,
              [&](std::size_t begin, std::size_t end) { add(a + begin, b + begin, out + begin, end - begin); });
  }

  std::size_t n_gradients_taken() const override { return has_relu_ ? 2 : 1; }

  std::vector<std::optional<Tensor>> plan_backward(Builder& builder, std::span<const Tensor> gradients) override {
    for (const Tensor& gradient : gradients) gradients_.push_back(builder.use(gradient).place);
    result_ = gradients[0];
    if (has_relu_) {
      builder.use(output_);
      if (!builder.may_overwrite(result_)) result_ = builder.make(output_.desc);
    }
    return {result_, builder.reordered(result_, second_desc_, after_)};
  }

  void backward(Call& call) override {
    if (has_relu_) {
      const auto* const y = storage_.at<const float>(output_.place);
      const auto* const a = storage_.at<const float>(gradients_[0]);
      const auto* const b = gradients_.size() > 1 ? storage_.at<const float>(gradients_[1]) : nullptr;
      auto* const out = storage_.at<float>(result_.place);
      for_parts(n_floats(output_.desc), least_elements, [&](std::size_t begin, std::size_t end) {
        loops().relu_backward(y + begin, a + begin, b ? b + begin : nullptr, out + begin, end - begin);
      });
    }
    run_all(after_, call.run);
  }

 private:
  const Storage& storage_;
  bool has_relu_;
  Desc second_desc_;
  Place a_{}, b_{};
  std::vector<Place> gradients_{};
  Tensor result_{};
  std::vector<Primitive> before_{};  ///< for inputs that lie differently
  std::vector<Primitive> after_{};
};

}  // namespace

std::unique_ptr<Kernel> make_add(const Planned& planned, const Add& layer) {
  return std::make_unique<AddKernel>(planned, layer);
}

}  // namespace lockstep::nn::host

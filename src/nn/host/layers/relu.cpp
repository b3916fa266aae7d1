#include "nn/host/kernel.hpp"
#include "nn/host/loops.hpp"
#include "nn/host/parallel.hpp"

namespace lockstep::nn::host {
namespace {

/// Its backward pass needs its output only, which the layer after it keeps anyway.
class ReluKernel final : public Kernel {
 public:
  ReluKernel(const Planned& planned, bool is_in_place)
      : storage_{planned.builder.storage}, input_{planned.builder.use(planned.inputs[0])} {
    output_ = is_in_place ? input_ : planned.builder.make(input_.desc);
  }

  void forward(Call&) override {
    const auto* const x = storage_.at<const float>(input_.place);
    auto* const out = storage_.at<float>(output_.place);
    for_parts(n_floats(output_.desc), least_elements,
              [&](std::size_t begin, std::size_t end) { loops().relu(x + begin, out + begin, end - begin); });
  }

  std::size_t n_gradients_taken() const override { return 2; }

  std::vector<std::optional<Tensor>> plan_backward(Builder& builder, std::span<const Tensor> gradients) override {
    builder.use(output_);
    for (const Tensor& gradient : gradients) gradients_.push_back(builder.use(gradient).place);
    result_ = builder.may_overwrite(gradients[0]) ? gradients[0] : builder.make(output_.desc);
    return {result_};
  }

  void backward(Call&) override {
    const auto* const y = storage_.at<const float>(output_.place);
    const auto* const a = storage_.at<const float>(gradients_[0]);
    const auto* const b = gradients_.size() > 1 ? storage_.at<const float>(gradients_[1]) : nullptr;
    auto* const out = storage_.at<float>(result_.place);
    for_parts(n_floats(output_.desc), least_elements, [&](std::size_t begin, std::size_t end) {
      loops().relu_backward(y + begin, a + begin, b ? b + begin : nullptr, out + begin, end - begin);
    });
  }

 private:
  const Storage& storage_;
  Tensor input_;
  std::vector<Place> gradients_{};
  Tensor result_{};
};

}  // namespace

std::unique_ptr<Kernel> make_relu(const Planned& planned, bool is_in_place) {
  return std::make_unique<ReluKernel>(planned, is_in_place);
}

}  // namespace lockstep::nn::host

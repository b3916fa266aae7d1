#include <algorithm>

#include "core/error.hpp"
#include "nn/host/elements.hpp"
#include "nn/host/layers.hpp"
#include "nn/ops/layer_norm/layer_norm_loops.hpp"

namespace lockstep::nn::host {
namespace {

const LayerNormLoops& layer_norm_loops() { return *core::available_loops<LayerNormLoops>().back(); }

/// Threads share rows; for the gradients of scale and shift, columns.
class LayerNormLayer final : public NodeLayer {
 public:
  LayerNormLayer(const Planned& planned, const LayerNorm& layer)
      : NodeLayer{planned},
        eps_{layer.eps},
        table_{static_cast<std::size_t>(planned.builder.n * n_elements(node_.output) / node_.output.back()),
               static_cast<std::size_t>(node_.output.back())} {
    Builder& builder = planned.builder;
    core::require(n_physical(input_.desc) == table_.n_rows * table_.n_columns,
                  "features are in order, without padding");
    for (const int parameter : node_.parameters)
      builder.parameters.choose(parameter, plain_desc({static_cast<dnnl::memory::dim>(table_.n_columns)}));
    weight_ = builder.parameter(node_.parameters[0]).place;
    bias_ = builder.parameter(node_.parameters[1]).place;
    moments_ = builder.make_bytes(table_.n_rows * sizeof(RowMoments));
    output_ = builder.make(input_.desc);
  }

  void forward(PassContext&) override {
    with_type(input_, [&]<class T>(T) {
      const auto* const x = storage_.at<const T>(input_.place);
      auto* const out = storage_.at<T>(output_.place);
      for_rows([&](const RowTable& rows, std::size_t first) {
        const std::size_t at = first * table_.n_columns;
        layer_norm_loops().of<T>().normalize(rows, x + at, eps_, storage_.at<const float>(weight_),
                                             storage_.at<const float>(bias_), storage_.at<RowMoments>(moments_) + first,
                                             out + at);
      });
    });
  }

  std::vector<Tensor> plan_backward(Builder& builder, std::span<const Tensor> gradients) override {
    core::require(type_of(gradients[0].desc) == type_of(input_.desc), "a gradient has the type of its value");
    builder.use(input_);
    storage_.use(moments_, builder.time);
    gradient_ = builder.use(gradients[0]).place;
    sums_ = builder.make_bytes(2 * table_.n_columns * sizeof(double));
    weight_gradient_ = builder.gradient(node_.parameters[0]).place;
    bias_gradient_ = builder.gradient(node_.parameters[1]).place;
    if (!builder.needs_gradient(node_.inputs[0])) return {Tensor{}};
    result_ = builder.may_overwrite(gradients[0]) ? gradients[0] : builder.make(input_.desc);
    return {*result_};
  }

  void backward(PassContext&) override {
    with_type(input_, [&]<class T>(T) {
      const auto* const x = storage_.at<const T>(input_.place);
      const auto* const gradient = storage_.at<const T>(gradient_);
      const auto* const moments = storage_.at<const RowMoments>(moments_);
      auto *const of_weight = storage_.at<double>(sums_), *const of_bias = of_weight + table_.n_columns;
      for_parts(table_.n_columns, least_elements / table_.n_rows + 1, [&](std::size_t begin, std::size_t end) {
        std::fill(of_weight + begin, of_weight + end, 0.0);
        std::fill(of_bias + begin, of_bias + end, 0.0);
        layer_norm_loops().of<T>().add_gradients(table_, {begin, end - begin}, x, gradient, moments, of_weight,
                                                 of_bias);
        const auto rounded = [](double sum) { return static_cast<float>(sum); };
        std::transform(of_weight + begin, of_weight + end, storage_.at<float>(weight_gradient_) + begin, rounded);
        std::transform(of_bias + begin, of_bias + end, storage_.at<float>(bias_gradient_) + begin, rounded);
      });
      if (!result_) return;
      auto* const out = storage_.at<T>(result_->place);  // may be the gradient, so this comes last
      for_rows([&](const RowTable& rows, std::size_t first) {
        const std::size_t at = first * table_.n_columns;
        layer_norm_loops().of<T>().backward(rows, x + at, gradient + at, storage_.at<const float>(weight_),
                                            moments + first, out + at);
      });
    });
  }

 private:
  /// Calls body(rows, index of the first) for parts of the table.
  template <class F>
  void for_rows(const F& body) const {
    for_parts(table_.n_rows, least_elements / table_.n_columns + 1, [&](std::size_t begin, std::size_t end) {
      body(RowTable{end - begin, table_.n_columns}, begin);
    });
  }

  double eps_;
  RowTable table_;
  Place weight_{}, bias_{}, weight_gradient_{}, bias_gradient_{};
  Place moments_{};
  Place sums_{};  ///< the gradients of scale, then of shift, in double
  Place gradient_{};
  std::optional<Tensor> result_{};
};

}  // namespace

std::unique_ptr<HostLayer> make_layer(const Planned& planned, const LayerNorm& layer) {
  return std::make_unique<LayerNormLayer>(planned, layer);
}

}  // namespace lockstep::nn::host

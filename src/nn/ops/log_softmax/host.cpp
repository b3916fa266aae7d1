#include <algorithm>
#include <cmath>

#include "nn/host/elements.hpp"
#include "nn/host/layers.hpp"
#include "nn/host/softmax_loops.hpp"

namespace lockstep::nn::host {
namespace {

/// Computes in float32, like the loss that reads it and that loss's gradient; sums are double, as in the loss.
class LogSoftmaxLayer final : public NodeLayer {
 public:
  explicit LogSoftmaxLayer(const Planned& planned)
      : NodeLayer{planned},
        n_{static_cast<std::size_t>(planned.builder.n * n_sample_rows(node_.output))},
        n_classes_{static_cast<std::size_t>(node_.output.back())} {
    output_ = planned.builder.make(plain_desc(dims_of(input_.desc)));
  }

  void forward(PassContext&) override {
    with_type(input_, [&]<class T>(T) {
      const auto* const x = storage_.at<const T>(input_.place);
      auto* const y = storage_.at<float>(output_.place);
      for_rows([&](std::size_t at) { normalize(x + at, y + at); });
    });
  }

  std::vector<Tensor> plan_backward(Builder& builder, std::span<const Tensor> gradients) override {
    builder.use(output_);
    gradient_ = builder.use(gradients[0]).place;
    result_ = builder.make(builder.samples(node_.output));
    return {result_};
  }

  void backward(PassContext&) override {
    with_type(result_, [&]<class T>(T) {
      const auto* const y = storage_.at<const float>(output_.place);
      const auto* const gradient = storage_.at<const float>(gradient_);
      auto* const out = storage_.at<T>(result_.place);
      for_rows([&](std::size_t at) { spread(y + at, gradient + at, out + at); });
    });
  }

 private:
  /// Calls body(place of a row's first class).
  template <class F>
  void for_rows(const F& body) const {
    for_parts(n_, least_elements / 4 / n_classes_ + 1, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) body(i * n_classes_);
    });
  }

  template <class T>
  void normalize(const T* x, float* y) const {
    std::transform(x, x + n_classes_, y, [](T value) { return static_cast<float>(value); });
    const float max = softmax_loops().max_and_total(y, n_classes_).max;
    const double log_sum =
        static_cast<double>(max) + std::log(softmax_loops().exponentials(y, max, n_classes_, nullptr));
    for (std::size_t c = 0; c < n_classes_; ++c) y[c] = static_cast<float>(static_cast<double>(y[c]) - log_sum);
  }

  template <class T>
  void spread(const float* y, const float* gradient, T* out) const {
    const double sum = softmax_loops().max_and_total(gradient, n_classes_).total;
    constexpr std::size_t block_elements = 256;
    float probabilities[block_elements];
    for (std::size_t first = 0; first < n_classes_; first += block_elements) {
      const std::size_t n = std::min(block_elements, n_classes_ - first);
      softmax_loops().exponentials(y + first, 0, n, probabilities);
      for (std::size_t i = 0; i < n; ++i) {
        const std::size_t c = first + i;
        // A label's class alone has a gradient. In double, because float32 does not hold the difference from 1 of a
        // class that is nearly certain.
        const double probability =
            gradient[c] == 0 ? static_cast<double>(probabilities[i]) : std::exp(static_cast<double>(y[c]));
        out[c] = T{static_cast<float>(static_cast<double>(gradient[c]) - probability * sum)};
      }
    }
  }

  std::size_t n_;  ///< rows
  std::size_t n_classes_;
  Place gradient_{};
  Tensor result_{};
};

}  // namespace

std::unique_ptr<HostLayer> make_layer(const Planned& planned, const LogSoftmax&) {
  return std::make_unique<LogSoftmaxLayer>(planned);
}

}  // namespace lockstep::nn::host

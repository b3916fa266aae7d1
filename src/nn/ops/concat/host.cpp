#include <algorithm>

#include "core/error.hpp"
#include "nn/host/elements.hpp"
#include "nn/host/layers.hpp"

namespace lockstep::nn::host {
namespace {

class ConcatLayer final : public NodeLayer {
 public:
  explicit ConcatLayer(const Planned& planned) : NodeLayer{planned}, n_{static_cast<std::size_t>(planned.builder.n)} {
    Builder& builder = planned.builder;
    width_ = static_cast<std::size_t>(node_.output[0]);
    std::size_t column = 0;
    for (const Tensor& input : planned.inputs) {
      const auto width = static_cast<std::size_t>(dims_of(builder.use(input).desc).back());
      core::require(input.desc == plain_desc(dims_of(input.desc), builder.type),
                    "inputs of a concatenation have plain layouts");
      parts_.push_back({column, width, input, {}});
      column += width;
    }
    output_ = builder.make(builder.samples(node_.output));
  }

  void forward(PassContext&) override {
    with_type(output_, [&]<class T>(T) {
      auto* const out = storage_.at<T>(output_.place);
      for (const Part& part : parts_) {
        const auto* const x = storage_.at<const T>(part.input.place);
        for_rows([&](std::size_t i) { std::copy_n(x + i * part.width, part.width, out + i * width_ + part.column); });
      }
    });
  }

  std::vector<Tensor> plan_backward(Builder& builder, std::span<const Tensor> gradients) override {
    gradient_ = builder.use(gradients[0]).place;
    std::vector<Tensor> results;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (builder.needs_gradient(node_.inputs[i])) parts_[i].gradient = builder.make(parts_[i].input.desc);
      results.push_back(parts_[i].gradient.value_or(Tensor{}));
    }
    return results;
  }

  void backward(PassContext&) override {
    with_type(output_, [&]<class T>(T) {
      const auto* const gradient = storage_.at<const T>(gradient_);
      for (const Part& part : parts_) {
        if (!part.gradient) continue;
        auto* const out = storage_.at<T>(part.gradient->place);
        for_rows(
            [&](std::size_t i) { std::copy_n(gradient + i * width_ + part.column, part.width, out + i * part.width); });
      }
    });
  }

 private:
  /// One input's columns.
  struct Part {
    std::size_t column;
    std::size_t width;
    Tensor input;
    std::optional<Tensor> gradient;
  };

  template <class F>
  void for_rows(const F& body) const {
    for_parts(n_, least_elements / width_ + 1, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) body(i);
    });
  }

  std::size_t n_;
  std::size_t width_ = 0;
  std::vector<Part> parts_{};
  Place gradient_{};
};

}  // namespace

std::unique_ptr<HostLayer> make_layer(const Planned& planned, const Concat&) {
  return std::make_unique<ConcatLayer>(planned);
}

}  // namespace lockstep::nn::host

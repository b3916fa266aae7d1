#include "nn/host/kernel.hpp"
#include "nn/host/parallel.hpp"

namespace lockstep::nn::host {
namespace {

class GlobalAvgPoolKernel final : public Kernel {
 public:
  explicit GlobalAvgPoolKernel(const Planned& planned)
      : node_{planned.node},
        storage_{planned.builder.storage},
        n_{static_cast<std::size_t>(planned.builder.n)},
        input_{planned.builder.use(planned.inputs[0])},
        image_{image_layout(input_.desc)} {
    output_ = planned.builder.make(plain_desc(with_batch(planned.builder.n, node_.output)));
  }

  void forward(Call&) override {
    const auto* const x = storage_.at<const float>(input_.place);
    auto* const out = storage_.at<float>(output_.place);
    for_parts(n_, least_samples(), [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) average(x + i * image_.sample_elements(), out + i * image_.n_channels);
    });
  }

  std::vector<std::optional<Tensor>> plan_backward(Builder& builder, std::span<const Tensor> gradients) override {
    gradient_ = builder.use(gradients[0]).place;
    if (!builder.needs_gradient(node_.inputs[0])) return {std::nullopt};
    result_ = builder.make(input_.desc);
    return {result_};
  }

  void backward(Call&) override {
    if (!result_) return;
    const auto* const gradient = storage_.at<const float>(gradient_);
    auto* const out = storage_.at<float>(result_->place);
    for_parts(n_, least_samples(), [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i)
        spread(gradient + i * image_.n_channels, out + i * image_.sample_elements());
    });
  }

 private:
  [[nodiscard]] std::size_t least_samples() const { return least_elements / image_.sample_elements() + 1; }

  void average(const float* x, float* out) const {
    const float factor = 1.0f / static_cast<float>(image_.n_positions);
    for (std::size_t c = 0; c < image_.n_channels; ++c) {
      float sum = 0;
      for (std::size_t p = 0; p < image_.n_positions; ++p) sum += x[image_.at(c, p)];
      out[c] = sum * factor;
    }
  }

  void spread(const float* gradient, float* out) const {
    const float factor = 1.0f / static_cast<float>(image_.n_positions);
    for (std::size_t first = 0; first < image_.n_blocks * image_.block; first += image_.block)
      for (std::size_t p = 0; p < image_.n_positions; ++p)
        for (std::size_t lane = 0; lane < image_.block; ++lane, ++out)
          *out = first + lane < image_.n_channels ? gradient[first + lane] * factor : 0.0f;
  }

  const Node& node_;
  const Storage& storage_;
  std::size_t n_;
  Tensor input_;
  ImageLayout image_;
  Place gradient_{};
  std::optional<Tensor> result_{};
};

}  // namespace

std::unique_ptr<Kernel> make_global_avg_pool(const Planned& planned) {
  return std::make_unique<GlobalAvgPoolKernel>(planned);
}

}  // namespace lockstep::nn::host

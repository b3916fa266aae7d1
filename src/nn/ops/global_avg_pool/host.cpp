#include <algorithm>

#include "nn/host/elements.hpp"
#include "nn/host/layers.hpp"

namespace lockstep::nn::host {
namespace {

class GlobalAvgPoolLayer final : public NodeLayer {
 public:
  explicit GlobalAvgPoolLayer(const Planned& planned)
      : NodeLayer{planned}, n_{static_cast<std::size_t>(planned.builder.n)}, image_{image_layout(input_.desc)} {
    sums_ = planned.builder.make_bytes(n_ * n_lanes() * sizeof(float));
    output_ = planned.builder.make(planned.builder.samples(node_.output));
  }

  void forward(PassContext&) override {
    with_type(output_, [&]<class T>(T) {
      const auto* const x = storage_.at<const T>(input_.place);
      auto* const sums = storage_.at<float>(sums_);
      auto* const out = storage_.at<T>(output_.place);
      for_samples([&](std::size_t i) {
        average(x + i * image_.sample_elements(), sums + i * n_lanes(), out + i * image_.n_channels);
      });
    });
  }

  std::vector<Tensor> plan_backward(Builder& builder, std::span<const Tensor> gradients) override {
    gradient_ = builder.use(gradients[0]).place;
    result_ = builder.make(input_.desc);
    return {result_};
  }

  void backward(PassContext&) override {
    with_type(output_, [&]<class T>(T) {
      const auto* const gradient = storage_.at<const T>(gradient_);
      auto* const out = storage_.at<T>(result_.place);
      for_samples([&](std::size_t i) { spread(gradient + i * image_.n_channels, out + i * image_.sample_elements()); });
    });
  }

 private:
  template <class F>
  void for_samples(const F& body) const {
    for_parts(n_, least_elements / image_.sample_elements() + 1, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) body(i);
    });
  }

  /// The number of channels, including padding.
  [[nodiscard]] std::size_t n_lanes() const { return image_.n_blocks * image_.block; }
  [[nodiscard]] float factor() const { return 1.0f / static_cast<float>(image_.n_positions); }

  template <class T>
  void average(const T* x, float* sums, T* out) const {
    for (std::size_t first = 0; first < n_lanes(); first += image_.block)
      loops().of<T>().sum_rows(x + first * image_.n_positions, image_.n_positions, image_.block, sums + first);
    loops().scale(sums, factor(), sums, image_.n_channels);
    loops().of<T>().from_floats(sums, out, image_.n_channels);
  }

  template <class T>
  void spread(const T* gradient, T* out) const {
    for (std::size_t first = 0; first < n_lanes(); first += image_.block) {
      T* const of_block = out + first * image_.n_positions;
      for (std::size_t c = first; c < first + image_.block; ++c)
        of_block[c - first] = c < image_.n_channels ? T{static_cast<float>(gradient[c]) * factor()} : T{};
      for (std::size_t p = 1; p < image_.n_positions; ++p)
        std::copy_n(of_block, image_.block, of_block + p * image_.block);
    }
  }

  std::size_t n_;
  ImageLayout image_;
  Place sums_{};  ///< of each sample
  Place gradient_{};
  Tensor result_{};
};

}  // namespace

std::unique_ptr<HostLayer> make_layer(const Planned& planned, const GlobalAvgPool&) {
  return std::make_unique<GlobalAvgPoolLayer>(planned);
}

}  // namespace lockstep::nn::host

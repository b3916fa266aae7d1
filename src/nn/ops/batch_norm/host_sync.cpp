// oneDNN's batch normalization uses statistics of its own samples only, so this one consists of our own loops.
#include <algorithm>
#include <cmath>
#include <limits>

#include "nn/host/elements.hpp"
#include "nn/ops/batch_norm/host_statistics.hpp"

namespace lockstep::nn::host {
namespace {

/// Samples are added up in at most this many parts, so the number of threads does not change the sums.
constexpr std::size_t most_sum_parts = 16;

class SyncBatchNormLayer final : public NodeLayer {
 public:
  SyncBatchNormLayer(const Planned& planned, const BatchNorm& layer)
      : NodeLayer{planned},
        layer_{layer},
        n_samples_{static_cast<std::size_t>(planned.builder.n)},
        image_{image_layout(input_.desc)} {
    Builder& builder = planned.builder;
    for (const int parameter : node_.parameters)
      builder.parameters.choose(parameter, plain_desc({static_cast<dnnl::memory::dim>(image_.n_channels)}));
    weight_ = builder.parameter(node_.parameters[0]).place;
    bias_ = builder.parameter(node_.parameters[1]).place;
    running_mean_ = &builder.statistics[static_cast<std::size_t>(node_.statistics[0])];
    running_variance_ = &builder.statistics[static_cast<std::size_t>(node_.statistics[1])];
    output_ = builder.make(input_.desc);
    exchanged_ = builder.make_bytes((4 * n_lanes() + 1) * sizeof(double));
    channels_ = builder.make_bytes(5 * n_lanes() * sizeof(float));
    for (const Place& place : {exchanged_, channels_}) {  // kept until the next pass, because this one may be repeated
      storage_.use(place, 0);
      storage_.use(place, std::numeric_limits<int>::max());
    }
    forward_parts_ = builder.make_bytes(n_sum_parts() * n_lanes() * sizeof(double));
  }

  void forward(PassContext& pass) override {
    with_type(input_, [&]<class T>(T) {
      const auto* const x = storage_.at<const T>(input_.place);
      auto* const out = storage_.at<T>(output_.place);
      if (!pass.is_repeated()) take_statistics(x, pass);
      const Normalization by = prepare();
      for_tiles([&](std::size_t at, std::size_t channel) {
        loops().of<T>().normalize(x + at, image_.n_positions, image_.block, from(by, channel), out + at);
      });
    });
    if (pass.numbers.share_of_step > 0)
      move_towards({layer_, pass}, means(), variances(), n_values(), *running_mean_, *running_variance_);
  }

  std::vector<Tensor> plan_backward(Builder& builder, std::span<const Tensor> gradients) override {
    builder.use(input_);
    gradient_ = builder.use(gradients[0]).place;
    backward_parts_ = builder.make_bytes(n_sum_parts() * 2 * n_lanes() * sizeof(double));
    weight_gradient_ = builder.gradient(node_.parameters[0]).place;
    bias_gradient_ = builder.gradient(node_.parameters[1]).place;
    if (!builder.needs_gradient(node_.inputs[0])) return {Tensor{}};
    result_ = builder.may_overwrite(gradients[0]) ? gradients[0] : builder.make(input_.desc);
    return {*result_};
  }

  void backward(PassContext& pass) override {
    with_type(input_, [&]<class T>(T) {
      const auto* const x = storage_.at<const T>(input_.place);
      const auto* const gradient = storage_.at<const T>(gradient_);
      const Normalization by = prepare();
      if (!pass.is_repeated()) take_gradients(x, gradient, by, pass);
      if (!result_) return;
      const Correction correction = prepare_correction();
      auto* const out = storage_.at<T>(result_->place);
      for_tiles([&](std::size_t at, std::size_t channel) {
        loops().of<T>().normalize_backward(x + at, gradient + at, image_.n_positions, image_.block, from(by, channel),
                                           {correction.offset + channel, correction.slope + channel}, out + at);
      });
    });
  }

 private:
  /// The number of channels, including padding.
  [[nodiscard]] std::size_t n_lanes() const { return image_.n_blocks * image_.block; }
  [[nodiscard]] std::size_t n_sum_parts() const { return std::min(n_samples_, most_sum_parts); }
  [[nodiscard]] std::size_t tile_elements() const { return image_.n_positions * image_.block; }
  [[nodiscard]] std::size_t tiles_of_thread(std::size_t n_tiles) const {
    return least_elements / (n_tiles * tile_elements()) + 1;
  }

  // Exchanged data: means with the number of values, variances, and two sums of gradients.
  [[nodiscard]] double* exchanged() const { return storage_.at<double>(exchanged_); }
  [[nodiscard]] std::span<double> means_and_n() const { return {exchanged(), image_.n_channels + 1}; }
  [[nodiscard]] std::span<double> means() const { return {exchanged(), image_.n_channels}; }
  [[nodiscard]] double n_values() const { return exchanged()[image_.n_channels]; }
  [[nodiscard]] std::span<double> variances() const { return {exchanged() + n_lanes() + 1, image_.n_channels}; }
  [[nodiscard]] std::span<double> gradient_sums() const {
    return {exchanged() + 2 * n_lanes() + 1, 2 * image_.n_channels};
  }
  [[nodiscard]] double inverse_deviation(std::size_t c) const { return 1 / std::sqrt(variances()[c] + layer_.eps); }

  static Normalization from(const Normalization& by, std::size_t channel) {
    return {by.mean + channel, by.factor + channel, by.shift + channel, by.least};
  }

  /// Calls f(first element, first channel) for all blocks of channels of all samples.
  template <class F>
  void for_tiles(const F& f) const {
    for_parts(n_samples_ * image_.n_blocks, tiles_of_thread(1), [&](std::size_t begin, std::size_t end) {
      for (std::size_t tile = begin; tile < end; ++tile)
        f(tile * tile_elements(), tile % image_.n_blocks * image_.block);
    });
  }

  /// f(first element, first channel, sums) adds to `n_sums` sums per channel. `totals` has the first sum of each
  /// channel, then the second, ... The sums of a channel are n_lanes() apart.
  template <class F>
  void sum_tiles(const Place& of_parts, std::size_t n_sums, std::span<double> totals, const F& f) const {
    const std::size_t n_parts = n_sum_parts(), stride = n_sums * n_lanes();
    auto* const parts = storage_.at<double>(of_parts);
    std::fill_n(parts, n_parts * stride, 0.0);
    const std::size_t least = tiles_of_thread(n_samples_ / n_parts);
    for_parts(n_parts * image_.n_blocks, least, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        const std::size_t part = i / image_.n_blocks, block = i % image_.n_blocks, channel = block * image_.block;
        const std::size_t last = n_samples_ * (part + 1) / n_parts;
        for (std::size_t sample = n_samples_ * part / n_parts; sample < last; ++sample)
          f((sample * image_.n_blocks + block) * tile_elements(), channel, parts + part * stride + channel);
      }
    });
    for (std::size_t i = 0; i < totals.size(); ++i) {
      const std::size_t at = i / image_.n_channels * n_lanes() + i % image_.n_channels;
      totals[i] = 0;
      for (std::size_t part = 0; part < n_parts; ++part) totals[i] += parts[part * stride + at];
    }
  }

  /// Computes means first, then deviations from them, because squares of values would cancel out.
  template <class T>
  void take_statistics(const T* x, const PassContext& pass) const {
    const auto& loops_of = loops().of<T>();
    sum_tiles(forward_parts_, 1, means(), [&](std::size_t at, std::size_t, double* sums) {
      loops_of.add_rows(x + at, image_.n_positions, image_.block, sums);
    });
    means_and_n().back() = static_cast<double>(n_samples_ * image_.n_positions);
    share_means(node_, pass, means_and_n());
    sum_tiles(forward_parts_, 1, variances(), [&](std::size_t at, std::size_t channel, double* sums) {
      loops_of.add_squares(x + at, image_.n_positions, image_.block, exchanged() + channel, sums);
    });
    share_variances(pass, n_values(), variances());
  }

  /// The gradients of scale and shift belong to this rank: they are summed over ranks like all others.
  template <class T>
  void take_gradients(const T* x, const T* gradient, const Normalization& by, const PassContext& pass) const {
    const std::span<double> sums = gradient_sums();
    sum_tiles(backward_parts_, 2, sums, [&](std::size_t at, std::size_t channel, double* of_tile) {
      loops().of<T>().add_gradients(x + at, gradient + at, image_.n_positions, image_.block, from(by, channel), of_tile,
                                    of_tile + n_lanes());
    });
    auto* const of_weight = storage_.at<float>(weight_gradient_);
    auto* const of_bias = storage_.at<float>(bias_gradient_);
    for (std::size_t c = 0; c < image_.n_channels; ++c) {
      of_bias[c] = static_cast<float>(sums[c]);
      of_weight[c] = static_cast<float>(sums[image_.n_channels + c] * inverse_deviation(c));
    }
    pass.sum(sums);
  }

  /// Padding has 0 in all arrays, and stays 0.
  [[nodiscard]] Normalization prepare() const {
    auto* const mean = storage_.at<float>(channels_);
    auto *const factor = mean + n_lanes(), *const shift = factor + n_lanes();
    std::fill_n(mean, 3 * n_lanes(), 0.0f);
    const auto* const weight = storage_.at<const float>(weight_);
    for (std::size_t c = 0; c < image_.n_channels; ++c) {
      mean[c] = static_cast<float>(means()[c]);
      factor[c] = static_cast<float>(static_cast<double>(weight[c]) * inverse_deviation(c));
    }
    std::copy_n(storage_.at<const float>(bias_), image_.n_channels, shift);
    return {mean, factor, shift, layer_.has_relu ? 0 : -std::numeric_limits<float>::infinity()};
  }

  [[nodiscard]] Correction prepare_correction() const {
    auto* const offset = storage_.at<float>(channels_) + 3 * n_lanes();
    float* const slope = offset + n_lanes();
    std::fill_n(offset, 2 * n_lanes(), 0.0f);
    const std::span<const double> sums = gradient_sums();
    for (std::size_t c = 0; c < image_.n_channels; ++c) {
      offset[c] = static_cast<float>(sums[c] / n_values());
      slope[c] = static_cast<float>(sums[image_.n_channels + c] / n_values() / (variances()[c] + layer_.eps));
    }
    return {offset, slope};
  }

  BatchNorm layer_;
  std::size_t n_samples_;
  ImageLayout image_;
  Place weight_{}, bias_{}, weight_gradient_{}, bias_gradient_{};
  std::vector<float>* running_mean_ = nullptr;
  std::vector<float>* running_variance_ = nullptr;
  Place exchanged_{};
  Place channels_{};  ///< of Normalization, then of Correction
  Place forward_parts_{}, backward_parts_{};
  Place gradient_{};
  std::optional<Tensor> result_{};
};

}  // namespace

std::unique_ptr<HostLayer> make_sync_batch_norm(const Planned& planned, const BatchNorm& layer) {
  return std::make_unique<SyncBatchNormLayer>(planned, layer);
}

}  // namespace lockstep::nn::host

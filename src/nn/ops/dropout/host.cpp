#include "core/error.hpp"
#include "core/rng.hpp"
#include "nn/host/elements.hpp"
#include "nn/host/layers.hpp"

namespace lockstep::nn::host {
namespace {

constexpr std::uint32_t low(std::uint64_t value) { return static_cast<std::uint32_t>(value); }
constexpr std::uint32_t high(std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32); }

/// One key for each seed and epoch.
std::array<std::uint32_t, 2> key_of(std::uint64_t seed, std::uint64_t epoch) {
  constexpr std::uint32_t dropout = 0x64726f70;  // separates these numbers from all others of the seed
  const auto block = core::philox({low(seed), high(seed)}, {low(epoch), high(epoch), dropout, 0});
  return {block[0], block[1]};
}

/// A sample's mask depends on its id and the logical place of each element, not on batch, rank or layout.
class DropoutLayer final : public NodeLayer {
 public:
  DropoutLayer(const Planned& planned, const Dropout& layer)
      : NodeLayer{planned},
        seed_{planned.builder.options.seed},
        n_{static_cast<std::size_t>(planned.builder.n)},
        is_identity_{!planned.builder.is_training || layer.probability == 0} {
    output_ = input_;
    if (is_identity_) return;
    factor_ = layer.factor();
    draw_.node = static_cast<std::uint32_t>(planned.index);
    draw_.threshold = layer.threshold();
    n_logical_ = static_cast<std::size_t>(n_elements(node_.output));
    n_physical_ = n_physical(input_.desc) / n_;
    drawn_bytes_ = (n_logical_ + 63) / 64 * 64;
    if (dims_of(input_.desc).size() == 4) image_ = image_layout(input_.desc);
    is_permuted_ = image_.block > 1;
    output_ = planned.builder.make(input_.desc);
    mask_ = planned.builder.make_bytes(n_ * (is_permuted_ ? n_physical_ : drawn_bytes_));
    if (is_permuted_) drawn_ = planned.builder.make_bytes(n_ * drawn_bytes_);
  }

  void forward(PassContext& pass) override {
    if (is_identity_) return;
    core::require(pass.batch.ids.size() == n_, "the samples have ids, which dropout needs");
    MaskKey key = draw_;
    key.key = key_of(seed_, pass.numbers.epoch);
    for_samples([&](std::size_t i) {
      MaskKey sample = key;
      sample.sample = pass.batch.ids[i];
      draw(sample, i);
      apply(input_.place, output_.place, i);
    });
  }

  std::vector<Tensor> plan_backward(Builder& builder, std::span<const Tensor> gradients) override {
    gradient_ = builder.use(gradients[0]);
    result_ = gradient_;
    if (is_identity_) return {result_};
    storage_.use(mask_, builder.time);
    if (!builder.may_overwrite(gradient_)) result_ = builder.make(input_.desc);
    return {result_};
  }

  void backward(PassContext&) override {
    if (is_identity_) return;
    for_samples([&](std::size_t i) { apply(gradient_.place, result_.place, i); });
  }

 private:
  template <class F>
  void for_samples(const F& body) const {
    for_parts(n_, least_elements / n_physical_ + 1, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) body(i);
    });
  }

  [[nodiscard]] std::uint8_t* mask_of(std::size_t i) const {
    return storage_.at<std::uint8_t>(mask_) + i * (is_permuted_ ? n_physical_ : drawn_bytes_);
  }

  void draw(const MaskKey& key, std::size_t i) const {
    if (!is_permuted_) return loops().draw_mask(key, mask_of(i), n_logical_);
    std::uint8_t* const drawn = storage_.at<std::uint8_t>(drawn_) + i * drawn_bytes_;
    loops().draw_mask(key, drawn, n_logical_);
    std::uint8_t* out = mask_of(i);
    for (std::size_t first = 0; first < image_.n_blocks * image_.block; first += image_.block)
      for (std::size_t p = 0; p < image_.n_positions; ++p)
        for (std::size_t c = first; c < first + image_.block; ++c)
          *out++ = c < image_.n_channels ? drawn[c * image_.n_positions + p] : 0;
  }

  void apply(const Place& from, const Place& to, std::size_t i) const {
    with_type(output_, [&]<class T>(T) {
      loops().of<T>().mask(storage_.at<const T>(from) + i * n_physical_, mask_of(i), factor_,
                           storage_.at<T>(to) + i * n_physical_, n_physical_);
    });
  }

  std::uint64_t seed_;
  std::size_t n_;
  bool is_identity_;
  bool is_permuted_ = false;  ///< memory is not in logical order
  float factor_ = 1;
  MaskKey draw_{};
  ImageLayout image_{};
  std::size_t n_logical_ = 0, n_physical_ = 0, drawn_bytes_ = 0;  ///< of a sample
  Place mask_{}, drawn_{};
  Tensor gradient_{}, result_{};
};

}  // namespace

std::unique_ptr<HostLayer> make_layer(const Planned& planned, const Dropout& layer) {
  return std::make_unique<DropoutLayer>(planned, layer);
}

}  // namespace lockstep::nn::host

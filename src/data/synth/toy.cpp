#include <cstring>

#include "data/synth/streams.hpp"
#include "data/synth/synth.hpp"

namespace lockstep::data {
namespace {

constexpr std::size_t n_inputs = 20;

class ToySource final : public Source {
 public:
  explicit ToySource(const SynthOptions& options)
      : n_samples_{options.samples > 0 ? options.samples : 2048}, seed_{options.seed} {
    spec_.x = {core::DType::float32, {n_inputs}};
    spec_.y = {core::DType::float32, {1}};
  }

  [[nodiscard]] const SetSpec& spec() const override { return spec_; }
  [[nodiscard]] std::vector<SourceSplit> splits() const override { return {{"train", n_samples_}}; }

  void read(std::size_t split, std::uint64_t first, std::uint64_t n, std::span<std::byte> x,
            std::span<std::byte> y) override {
    for (std::uint64_t i = 0; i < n; ++i) {
      core::Random random = synth_random(seed_, SynthKind::toy, split, first + i);
      std::array<float, n_inputs + 1> values;
      for (float& value : values) value = uniform(random, 0, 1);
      std::memcpy(x.data() + i * spec_.x.bytes(), values.data(), spec_.x.bytes());
      std::memcpy(y.data() + i * spec_.y.bytes(), &values.back(), spec_.y.bytes());
    }
  }

 private:
  std::uint64_t n_samples_;
  std::uint64_t seed_;
  SetSpec spec_{};
};

}  // namespace

std::unique_ptr<Source> synth_toy(const SynthOptions& options) { return std::make_unique<ToySource>(options); }

}  // namespace lockstep::data

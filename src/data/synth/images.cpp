#include <algorithm>
#include <cmath>
#include <string>

#include "core/error.hpp"
#include "data/format/label.hpp"
#include "data/synth/streams.hpp"
#include "data/synth/synth.hpp"

namespace lockstep::data {
namespace {

constexpr std::size_t n_waves = 3;

/// A wave of a class's texture; a full turn is 2^32, so that phases wrap by themselves.
struct Wave {
  std::uint32_t step_x = 0, step_y = 0;
  std::vector<std::int32_t> strengths{};  // per channel
};

std::array<std::int32_t, 256> make_sines() {
  std::array<std::int32_t, 256> sines;
  for (std::size_t i = 0; i < sines.size(); ++i) {
    sines[i] = static_cast<std::int32_t>(std::lround(127 * std::sin(static_cast<double>(i) * 6.283185307179586 / 256)));
  }
  return sines;
}

std::uint64_t checked(std::uint64_t value, std::uint64_t most, const char* flag) {
  if (value == 0 || value > most) {
    core::fail_usage({.what = "a value of " + std::to_string(value),
                      .where = flag,
                      .expected = "1 to " + std::to_string(most),
                      .fix = "give a value in that range"});
  }
  return value;
}

class SynthImages final : public Source {
 public:
  explicit SynthImages(const SynthOptions& options) : options_{options}, sines_{make_sines()} {
    if (options_.samples == 0) options_.samples = 10'000;
    spec_.x = {core::DType::uint8,
               {checked(options.height, 65'536, "--height"), checked(options.width, 65'536, "--width"),
                checked(options.channels, 1024, "--channels")}};
    const std::uint64_t n_classes = checked(options.classes, 65'536, "--classes");
    spec_.y = {label_dtype(n_classes), {}};
    for (std::uint64_t label = 0; label < n_classes; ++label) spec_.classes.push_back(std::to_string(label));
  }

  [[nodiscard]] const SetSpec& spec() const override { return spec_; }
  [[nodiscard]] std::vector<SourceSplit> splits() const override {
    return {{"train", options_.samples}, {"val", std::max<std::uint64_t>(options_.samples / 10, 1)}};
  }

  void read(std::size_t split, std::uint64_t first, std::uint64_t n, std::span<std::byte> x,
            std::span<std::byte> y) override {
    const std::uint64_t x_bytes = spec_.x.bytes(), y_bytes = spec_.y.bytes();
    for (std::uint64_t i = 0; i < n; ++i) {
      core::Random random = synth_random(options_.seed, SynthKind::images, split, first + i);
      const std::uint64_t label = random.below(options_.classes);
      draw(texture(label), random, x.subspan(i * x_bytes, x_bytes));
      store_label(label, y.subspan(i * y_bytes, y_bytes));
    }
  }

 private:
  // At most 1/8 turn per pixel, so that a texture survives being halved.
  [[nodiscard]] std::array<Wave, n_waves> texture(std::uint64_t label) const {
    core::Random random = synth_random(options_.seed, SynthKind::images, class_stream, label);
    std::array<Wave, n_waves> waves;
    for (Wave& wave : waves) {
      wave.step_x = static_cast<std::uint32_t>(random.next()) >> 3;
      wave.step_y = static_cast<std::uint32_t>(random.next()) >> 3;
      if (random.below(2) == 1) wave.step_y = 0 - wave.step_y;
      for (std::uint64_t c = 0; c < options_.channels; ++c) {
        wave.strengths.push_back(static_cast<std::int32_t>(random.below(65)) - 32);
      }
    }
    return waves;
  }

  // The waves of the class at random phases, and noise of up to 32 levels either way.
  void draw(const std::array<Wave, n_waves>& waves, core::Random& random, std::span<std::byte> x) const {
    std::array<std::uint32_t, n_waves> row_phases;
    for (std::uint32_t& phase : row_phases) phase = static_cast<std::uint32_t>(random.next());
    std::uint64_t bits = 0;
    std::size_t place = 0;
    for (std::uint64_t row = 0; row < options_.height; ++row) {
      std::array<std::uint32_t, n_waves> phases = row_phases;
      for (std::uint64_t column = 0; column < options_.width; ++column) {
        std::array<std::int32_t, n_waves> heights;
        for (std::size_t w = 0; w < n_waves; ++w) heights[w] = sines_[phases[w] >> 24];
        for (std::uint64_t c = 0; c < options_.channels; ++c, ++place) {
          if (place % 8 == 0) bits = random.next();
          std::int32_t sum = 0;
          for (std::size_t w = 0; w < n_waves; ++w) sum += heights[w] * waves[w].strengths[c];
          const auto noise = static_cast<std::int32_t>(bits & 63) - 32;
          bits >>= 8;
          x[place] = static_cast<std::byte>(std::clamp(128 + sum / 128 + noise, 0, 255));
        }
        for (std::size_t w = 0; w < n_waves; ++w) phases[w] += waves[w].step_x;
      }
      for (std::size_t w = 0; w < n_waves; ++w) row_phases[w] += waves[w].step_y;
    }
  }

  SynthOptions options_;
  std::array<std::int32_t, 256> sines_;
  SetSpec spec_{};
};

}  // namespace

std::unique_ptr<Source> synth_images(const SynthOptions& options) { return std::make_unique<SynthImages>(options); }

}  // namespace lockstep::data

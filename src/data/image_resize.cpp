#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.hpp"
#include "data/image.hpp"

namespace lockstep::data {
namespace {

// Weights are fixed-point numbers of 22 bits: a sum of 255 times 1 and its rounding stay below 2^31.
constexpr int weight_bits = 22;
constexpr std::int32_t half = std::int32_t{1} << (weight_bits - 1);

std::uint8_t to_level(std::int32_t sum) { return static_cast<std::uint8_t>(std::min(sum >> weight_bits, 255)); }

/// For each place along one side of the result: which inputs count, and how much.
struct Taps {
  struct Run {
    std::size_t first = 0;
    std::size_t n = 0;
  };
  std::vector<Run> runs;
  std::vector<std::int32_t> weights;
  std::size_t stride = 0;  // of weights, per run

  [[nodiscard]] const std::int32_t* of(std::size_t i) const { return weights.data() + i * stride; }
};

// The triangle of a place is centred on it and as wide as two pixels of the result or of the input, whichever is wider.
Taps make_taps(std::size_t n_in, double begin, double length, std::size_t n_out) {
  const double scale = length / static_cast<double>(n_out);
  const double support = std::max(scale, 1.0);
  Taps taps;
  taps.stride = static_cast<std::size_t>(std::ceil(support)) * 2 + 1;
  taps.runs.resize(n_out);
  taps.weights.resize(n_out * taps.stride);
  std::vector<double> exact(taps.stride);
  for (std::size_t i = 0; i < n_out; ++i) {
    const double center = begin + (static_cast<double>(i) + 0.5) * scale;
    const auto first = static_cast<std::size_t>(std::max(center - support + 0.5, 0.0));
    const auto last = std::min(static_cast<std::size_t>(center + support + 0.5), n_in);
    double sum = 0;
    for (std::size_t k = first; k < last; ++k) {
      const double distance = std::abs(static_cast<double>(k) + 0.5 - center) / support;
      exact[k - first] = std::max(1 - distance, 0.0);
      sum += exact[k - first];
    }
    taps.runs[i] = {first, last - first};
    std::int32_t* weights = taps.weights.data() + i * taps.stride;
    for (std::size_t k = 0; k < last - first; ++k) {
      weights[k] = static_cast<std::int32_t>(exact[k] / sum * (1 << weight_bits) + 0.5);
    }
  }
  return taps;
}

template <std::size_t channels>
void resize_row(const std::uint8_t* in, const Taps& taps, std::uint8_t* out) {
  for (std::size_t i = 0; i < taps.runs.size(); ++i) {
    const auto [first, n] = taps.runs[i];
    const std::int32_t* weights = taps.of(i);
    const std::uint8_t* pixel = in + first * channels;
    std::array<std::int32_t, channels> sums;
    sums.fill(half);
    for (std::size_t k = 0; k < n; ++k) {
      for (std::size_t c = 0; c < channels; ++c) sums[c] += pixel[k * channels + c] * weights[k];
    }
    for (std::size_t c = 0; c < channels; ++c) out[i * channels + c] = to_level(sums[c]);
  }
}

// One row of the result from `run.n` rows of `row_bytes`, in pieces whose sums stay in the first cache.
void resize_column_run(const std::uint8_t* rows, std::size_t row_bytes, std::size_t n, const std::int32_t* weights,
                       std::uint8_t* out) {
  constexpr std::size_t piece = 1024;
  std::array<std::int32_t, piece> sums;
  for (std::size_t begin = 0; begin < row_bytes; begin += piece) {
    const std::size_t length = std::min(piece, row_bytes - begin);
    std::fill_n(sums.begin(), length, half);
    for (std::size_t k = 0; k < n; ++k) {
      const std::uint8_t* row = rows + k * row_bytes + begin;
      const std::int32_t weight = weights[k];
      for (std::size_t j = 0; j < length; ++j) sums[j] += row[j] * weight;
    }
    for (std::size_t j = 0; j < length; ++j) out[begin + j] = to_level(sums[j]);
  }
}

void resize_row(std::uint64_t channels, const std::uint8_t* in, const Taps& taps, std::uint8_t* out) {
  channels == 1 ? resize_row<1>(in, taps, out) : resize_row<3>(in, taps, out);
}

}  // namespace

// As Pillow: rows first, rounded to levels, then columns; pixels outside of the box, but inside of the image, count.
void resize(std::span<const std::byte> pixels, std::uint64_t height, std::uint64_t width, std::uint64_t channels,
            const Box& box, std::uint64_t out_height, std::uint64_t out_width, std::span<std::byte> out) {
  core::require(channels == 1 || channels == 3, "images have 1 or 3 channels");
  core::require(pixels.size() == height * width * channels && out.size() == out_height * out_width * channels,
                "images and their sizes agree");
  constexpr double rounding = 1e-6;
  core::require(box.top >= 0 && box.left >= 0 && box.height > 0 && box.width > 0 &&
                    box.top + box.height <= static_cast<double>(height) + rounding &&
                    box.left + box.width <= static_cast<double>(width) + rounding,
                "the box of a resize lies inside of the image");
  const Taps across = make_taps(width, box.left, box.width, out_width);
  const Taps down = make_taps(height, box.top, box.height, out_height);
  if (out.empty()) return;

  const std::size_t first_row = down.runs.front().first;
  const std::size_t n_rows = down.runs.back().first + down.runs.back().n - first_row;
  const auto* in = reinterpret_cast<const std::uint8_t*>(pixels.data()) + first_row * width * channels;
  thread_local std::vector<std::uint8_t> narrowed;  // kept, as fresh memory costs more than the loop that fills it
  if (out_width != width || box.left != 0 || box.width != static_cast<double>(width)) {
    narrowed.resize(n_rows * out_width * channels);
    for (std::size_t y = 0; y < n_rows; ++y) {
      resize_row(channels, in + y * width * channels, across, narrowed.data() + y * out_width * channels);
    }
    in = narrowed.data();
  }
  const std::size_t row_bytes = out_width * channels;
  auto* result = reinterpret_cast<std::uint8_t*>(out.data());
  for (std::size_t y = 0; y < out_height; ++y) {
    const auto [first, n] = down.runs[y];
    resize_column_run(in + (first - first_row) * row_bytes, row_bytes, n, down.of(y), result + y * row_bytes);
  }
}

}  // namespace lockstep::data

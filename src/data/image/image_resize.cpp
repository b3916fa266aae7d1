#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "data/image/image.hpp"
#include "data/image/resize_loops.hpp"

namespace lockstep::data {
namespace {

struct Taps {
  std::vector<TapRun> runs;
  std::vector<std::int32_t> weights;
  TapTable table{};
};

// The triangle of a place is centred on it and as wide as two pixels of the result or of the input, whichever is wider.
Taps make_taps(std::size_t n_in, double begin, double length, std::size_t n_out) {
  const double scale = length / static_cast<double>(n_out);
  const double support = std::max(scale, 1.0);
  Taps taps;
  const std::size_t stride = static_cast<std::size_t>(std::ceil(support)) * 2 + 1;
  std::size_t most_taps = 0;
  taps.runs.resize(n_out);
  taps.weights.resize(n_out * stride);
  std::vector<double> exact(stride);
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
    most_taps = std::max(most_taps, last - first);
    std::int32_t* weights = taps.weights.data() + i * stride;
    for (std::size_t k = 0; k < last - first; ++k) {
      weights[k] = static_cast<std::int32_t>(exact[k] / sum * (1 << tap_weight_bits) + 0.5);
    }
  }
  taps.table = {taps.runs.data(), taps.weights.data(), stride, most_taps, n_in, n_out};
  return taps;
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
  const ResizeLoops& loops = *core::available_loops<ResizeLoops>().back();
  const Taps across = make_taps(width, box.left, box.width, out_width);
  const Taps down = make_taps(height, box.top, box.height, out_height);
  if (out.empty()) return;

  const std::size_t first_row = down.runs.front().first;
  const std::size_t n_rows = down.runs.back().first + down.runs.back().n - first_row;
  const auto* in = reinterpret_cast<const std::uint8_t*>(pixels.data()) + first_row * width * channels;
  thread_local std::vector<std::uint8_t> narrowed;  // kept, as fresh memory costs more than the loop that fills it
  if (out_width != width || box.left != 0 || box.width != static_cast<double>(width)) {
    narrowed.resize(n_rows * out_width * channels);
    const auto row = channels == 1 ? loops.gray_row : loops.colour_row;
    for (std::size_t y = 0; y < n_rows; ++y) {
      row(in + y * width * channels, across.table, narrowed.data() + y * out_width * channels);
    }
    in = narrowed.data();
  }
  const std::size_t row_bytes = out_width * channels;
  auto* result = reinterpret_cast<std::uint8_t*>(out.data());
  for (std::size_t y = 0; y < out_height; ++y) {
    const auto [first, n] = down.runs[y];
    const std::int32_t* weights = down.table.weights + y * down.table.stride;
    loops.column_run(in + (first - first_row) * row_bytes, row_bytes, n, weights, result + y * row_bytes);
  }
}

}  // namespace lockstep::data

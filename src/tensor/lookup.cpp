#include "tensor/lookup.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace lockstep::tensor {
namespace {

constexpr std::size_t n_levels = 256;

template <class T>
std::vector<T> make_table(std::span<const Levels> channels) {
  std::vector<T> table;
  table.reserve(channels.size() * n_levels);
  for (const Levels& levels : channels)
    for (const float value : levels) table.push_back(static_cast<T>(value));
  return table;
}

/// Where elements of the result lie: distances in elements.
struct Strides {
  std::ptrdiff_t channel = 0;
  std::ptrdiff_t row = 0;
  std::ptrdiff_t column = 0;
};

Strides strides_of(Layout layout, std::size_t n_channels, const Window& window) noexcept {
  const auto c = static_cast<std::ptrdiff_t>(n_channels);
  const auto h = static_cast<std::ptrdiff_t>(window.height);
  const auto w = static_cast<std::ptrdiff_t>(window.width);
  return layout == Layout::nchw ? Strides{h * w, w, 1} : Strides{1, w * c, c};
}

/// `n` pixels in a row. Channels known to the compiler (n_static > 0) are taken together.
template <std::size_t n_static, class T>
void look_up_row(const unsigned char* __restrict in, std::size_t n, std::size_t n_channels, const T* __restrict table,
                 T* __restrict out, std::ptrdiff_t channel_stride, std::ptrdiff_t column_stride) {
  const std::size_t step = n_static > 0 ? n_static : n_channels;
  for (std::size_t i = 0; i < n; ++i, in += step, out += column_stride)
    for (std::size_t c = 0; c < step; ++c)
      out[static_cast<std::ptrdiff_t>(c) * channel_stride] = table[c * n_levels + in[c]];
}

/// `n` pixels of level 0 in a row.
template <class T>
void fill_row(std::size_t n, std::size_t n_channels, const T* table, T* out, const Strides& strides) {
  for (std::size_t i = 0; i < n; ++i, out += strides.column)
    for (std::size_t c = 0; c < n_channels; ++c)
      out[static_cast<std::ptrdiff_t>(c) * strides.channel] = table[c * n_levels];
}

/// Rows or columns [begin, end) of a window that lie within the image.
struct Overlap {
  std::size_t begin = 0;
  std::size_t end = 0;
};

Overlap overlap(std::ptrdiff_t first, std::size_t n, std::size_t n_there) noexcept {
  const auto size = static_cast<std::ptrdiff_t>(n);
  const std::ptrdiff_t begin = std::clamp<std::ptrdiff_t>(-first, 0, size);
  const std::ptrdiff_t end = std::clamp<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(n_there) - first, begin, size);
  return {static_cast<std::size_t>(begin), static_cast<std::size_t>(end)};
}

template <std::size_t n_static, class T>
void look_up(const Image& image, const Window& window, std::size_t n_channels, const T* table, T* out,
             const Strides& strides) {
  const Overlap rows = overlap(window.top, window.height, image.height);
  const Overlap columns = overlap(window.left, window.width, image.width);
  const std::ptrdiff_t step = window.is_flipped ? -strides.column : strides.column;
  const auto* pixels = reinterpret_cast<const unsigned char*>(image.pixels.data());
  if (window.is_flipped) out += static_cast<std::ptrdiff_t>(window.width - 1) * strides.column;
  const Strides directed{strides.channel, strides.row, step};
  for (std::size_t y = 0; y < window.height; ++y, out += strides.row) {
    if (y < rows.begin || y >= rows.end) {
      fill_row(window.width, n_channels, table, out, directed);
      continue;
    }
    const auto row = static_cast<std::size_t>(window.top + static_cast<std::ptrdiff_t>(y));
    const auto column = static_cast<std::size_t>(window.left + static_cast<std::ptrdiff_t>(columns.begin));
    fill_row(columns.begin, n_channels, table, out, directed);
    look_up_row<n_static>(pixels + row * image.row_bytes + column * n_channels, columns.end - columns.begin, n_channels,
                          table, out + static_cast<std::ptrdiff_t>(columns.begin) * step, strides.channel, step);
    fill_row(window.width - columns.end, n_channels, table, out + static_cast<std::ptrdiff_t>(columns.end) * step,
             directed);
  }
}

}  // namespace

Lookup::Lookup(std::span<const Levels> channels, core::DType dtype, Layout layout)
    : n_channels_{channels.size()}, layout_{layout} {
  core::require(dtype == core::DType::float32 || dtype == core::DType::bfloat16, "pixels become float32 or bfloat16");
  if (dtype == core::DType::float32)
    table_ = make_table<float>(channels);
  else
    table_ = make_table<core::bfloat16>(channels);
}

std::size_t Lookup::n_bytes(std::size_t height, std::size_t width) const noexcept {
  const std::size_t size = std::holds_alternative<Floats>(table_) ? sizeof(float) : sizeof(core::bfloat16);
  return height * width * n_channels_ * size;
}

void Lookup::apply(const Image& image, const Window& window, std::span<std::byte> out) const {
  core::require(out.size() == n_bytes(window.height, window.width), "room for the converted image");
  if (out.empty()) return;
  const Strides strides = strides_of(layout_, n_channels_, window);
  std::visit(
      [&]<class T>(const std::vector<T>& table) {
        auto* const elements = reinterpret_cast<T*>(out.data());
        switch (n_channels_) {
          case 1: return look_up<1>(image, window, 1, table.data(), elements, strides);
          case 3: return look_up<3>(image, window, 3, table.data(), elements, strides);
          default: return look_up<0>(image, window, n_channels_, table.data(), elements, strides);
        }
      },
      table_);
}

}  // namespace lockstep::tensor

#include "data/augment/lookup.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace lockstep::data {
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

/// The layout of the result: distances in elements.
struct Strides {
  std::ptrdiff_t channel = 0;
  std::ptrdiff_t row = 0;
  std::ptrdiff_t column = 0;
};

Strides strides_of(ChannelOrder layout, std::size_t n_channels, const Window& window) noexcept {
  const auto c = static_cast<std::ptrdiff_t>(n_channels);
  const auto h = static_cast<std::ptrdiff_t>(window.height);
  const auto w = static_cast<std::ptrdiff_t>(window.width);
  return layout == ChannelOrder::nchw ? Strides{h * w, w, 1} : Strides{1, w * c, c};
}

/// Converts `n` consecutive pixels. Channels known to the compiler (n_static > 0) are converted together.
template <std::size_t n_static, class T>
void look_up_row(const unsigned char* __restrict in, std::size_t n, std::size_t n_channels, const T* __restrict table,
                 T* __restrict out, std::ptrdiff_t channel_stride, std::ptrdiff_t column_stride) {
  const std::size_t step = n_static > 0 ? n_static : n_channels;
  for (std::size_t i = 0; i < n; ++i, in += step, out += column_stride)
    for (std::size_t c = 0; c < step; ++c)
      out[static_cast<std::ptrdiff_t>(c) * channel_stride] = table[c * n_levels + in[c]];
}

/// Writes `n` consecutive pixels of level 0.
template <class T>
void fill_row(std::size_t n, std::size_t n_channels, const T* table, T* out, const Strides& strides) {
  for (std::size_t i = 0; i < n; ++i, out += strides.column)
    for (std::size_t c = 0; c < n_channels; ++c)
      out[static_cast<std::ptrdiff_t>(c) * strides.channel] = table[c * n_levels];
}

/// Rows or columns [begin, end) of a window that are within the image.
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

/// The parts of a window within the image, and outside.
struct Overlaps {
  Overlaps(const Pixels& image, const Window& window)
      : rows{overlap(window.top, window.height, image.height)},
        columns{overlap(window.left, window.width, image.width)} {}

  Overlap rows;
  Overlap columns;
};

const unsigned char* pixel_at(const Pixels& image, std::ptrdiff_t row, std::ptrdiff_t column, std::size_t n_channels) {
  return reinterpret_cast<const unsigned char*>(image.pixels.data()) + static_cast<std::size_t>(row) * image.row_bytes +
         static_cast<std::size_t>(column) * n_channels;
}

/// Calls `convert(in, n, out)` for the n pixels of each row that are within the image, whose result begins at `out`,
/// and fills the rest.
template <class T, class ConvertRow>
void look_up(const Pixels& image, const Window& window, std::size_t n_channels, const T* table, T* out,
             const Strides& strides, ConvertRow convert) {
  const auto [rows, columns] = Overlaps{image, window};
  const std::ptrdiff_t step = window.is_flipped ? -strides.column : strides.column;
  if (window.is_flipped) out += static_cast<std::ptrdiff_t>(window.width - 1) * strides.column;
  const Strides directed{strides.channel, strides.row, step};
  for (std::size_t y = 0; y < window.height; ++y, out += strides.row) {
    if (y < rows.begin || y >= rows.end) {
      fill_row(window.width, n_channels, table, out, directed);
      continue;
    }
    const auto* const in = pixel_at(image, window.top + static_cast<std::ptrdiff_t>(y),
                                    window.left + static_cast<std::ptrdiff_t>(columns.begin), n_channels);
    fill_row(columns.begin, n_channels, table, out, directed);
    convert(in, columns.end - columns.begin, out + static_cast<std::ptrdiff_t>(columns.begin) * step);
    fill_row(window.width - columns.end, n_channels, table, out + static_cast<std::ptrdiff_t>(columns.end) * step,
             directed);
  }
}

/// Converts one value at a time.
template <std::size_t n_static, class T>
void look_up_plain(const Pixels& image, const Window& window, std::size_t n_channels, const T* table, T* out,
                   const Strides& strides) {
  const std::ptrdiff_t step = window.is_flipped ? -strides.column : strides.column;
  look_up(image, window, n_channels, table, out, strides, [&](const unsigned char* in, std::size_t n, T* to) {
    look_up_row<n_static>(in, n, n_channels, table, to, strides.channel, step);
  });
}

BytePlanes make_planes(std::span<const std::byte> table, std::size_t n_channels, std::size_t element_bytes) {
  BytePlanes planes(table.size());
  for (std::size_t c = 0; c < n_channels; ++c)
    for (std::size_t byte = 0; byte < element_bytes; ++byte)
      for (std::size_t level = 0; level < n_levels; ++level)
        planes[(c * element_bytes + byte) * n_levels + level] =
            std::to_integer<std::uint8_t>(table[(c * n_levels + level) * element_bytes + byte]);
  return planes;
}

/// Converts 64 values at a time: 5 times as fast on AVX-512.
template <class T>
void look_up_planar(const Pixels& image, const Window& window, std::size_t n_channels, const T* table, T* out,
                    const Strides& strides, const BytePlanes& planes, ConvertPlanar planar) {
  const auto convert = [&](const unsigned char* in, std::size_t n, T* to) {
    if (n == 0) return;
    auto* const first = reinterpret_cast<std::byte*>(window.is_flipped ? to - (n - 1) : to);
    planar({in, n, n_channels, window.is_flipped}, planes.data(), sizeof(T), first,
           static_cast<std::size_t>(strides.channel));
  };
  const auto [rows, columns] = Overlaps{image, window};
  const bool is_whole = !window.is_flipped && rows.end - rows.begin == window.height && window.width == image.width &&
                        columns.end - columns.begin == window.width && image.row_bytes == image.width * n_channels;
  if (is_whole) return convert(pixel_at(image, window.top, 0, n_channels), window.height * window.width, out);
  look_up(image, window, n_channels, table, out, strides, convert);
}

}  // namespace

Lookup::Lookup(std::span<const Levels> channels, core::DType dtype, ChannelOrder layout)
    : n_channels_{channels.size()}, layout_{layout} {
  core::require(dtype == core::DType::float32 || dtype == core::DType::bfloat16,
                "pixels are converted to float32 or bfloat16");
  if (dtype == core::DType::float32)
    table_ = make_table<float>(channels);
  else
    table_ = make_table<core::bfloat16>(channels);
  if (layout != ChannelOrder::nchw || n_channels_ > 4) return;
  planar_ = find_planar();
  std::visit(
      [&](const auto& table) {
        planes_ = make_planes(std::as_bytes(std::span{table}), n_channels_, sizeof(table.front()));
      },
      table_);
}

std::size_t Lookup::n_bytes(std::size_t height, std::size_t width) const noexcept {
  const std::size_t size = std::holds_alternative<Floats>(table_) ? sizeof(float) : sizeof(core::bfloat16);
  return height * width * n_channels_ * size;
}

void Lookup::apply(const Pixels& image, const Window& window, std::span<std::byte> out) const {
  core::require(out.size() == n_bytes(window.height, window.width), "the output has the size of the converted image");
  if (out.empty()) return;
  const Strides strides = strides_of(layout_, n_channels_, window);
  std::visit(
      [&]<class T>(const std::vector<T>& table) {
        auto* const elements = reinterpret_cast<T*>(out.data());
        if (planar_ != nullptr)
          return look_up_planar(image, window, n_channels_, table.data(), elements, strides, planes_, planar_);
        switch (n_channels_) {
          case 1: return look_up_plain<1>(image, window, 1, table.data(), elements, strides);
          case 3: return look_up_plain<3>(image, window, 3, table.data(), elements, strides);
          default: return look_up_plain<0>(image, window, n_channels_, table.data(), elements, strides);
        }
      },
      table_);
}

}  // namespace lockstep::data

#include "nn/ops/conv/host_columns.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/timer.hpp"
#include "nn/host/dnnl_primitives.hpp"
#include "nn/host/parallel.hpp"

namespace lockstep::nn::host {
namespace {

using dnnl::memory;
using ColumnTag = memory::format_tag;

constexpr memory::dim channel_block = 16;
constexpr memory::dim most_positions = 64;  ///< of an output map; oneDNN is fast on larger ones

/// The shortest of a few runs.
template <class F>
double shortest_s(const F& run) {
  run();
  double shortest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 3; ++i) {
    const double begin_s = core::now().value;
    run();
    shortest = std::min(shortest, core::now().value - begin_s);
  }
  return shortest;
}

/// Allocates memory of numbers that are neither 0 nor large.
memory some_memory(const dnnl::engine& engine, const Desc& desc) {
  memory made{desc, engine};
  std::memset(made.get_data_handle(), 0x3c, desc.get_size());
  return made;
}

Primitive on_some_memory(const dnnl::engine& engine, const ConvColumns::Gradient& gradient, const memory& src,
                         const memory& dst) {
  Primitive::Arguments arguments{{DNNL_ARG_SRC, src},
                                 {DNNL_ARG_DIFF_DST, dst},
                                 {DNNL_ARG_DIFF_WEIGHTS, some_memory(engine, gradient.diff_weights_desc())}};
  const Desc scratchpad = gradient.scratchpad_desc();
  if (scratchpad.get_size() > 0) arguments.emplace_back(DNNL_ARG_SCRATCHPAD, some_memory(engine, scratchpad));
  return {gradient.get(), arguments};
}

const std::byte* bytes_of(const memory& m) { return static_cast<const std::byte*>(m.get_data_handle()); }
std::byte* bytes_of(memory& m) { return static_cast<std::byte*>(m.get_data_handle()); }

}  // namespace

std::optional<ConvColumns> ConvColumns::find(const dnnl::engine& engine, const Desc& src, const Desc& weights,
                                             const Desc& dst, const Window& window) {
  const Dims in = dims_of(src), out = dims_of(dst), kernel = dims_of(weights);
  const memory::data_type type = type_of(src);
  const bool has_blocks = src == Desc{in, type, ColumnTag::aBcd16b} && dst == Desc{out, type, ColumnTag::aBcd16b} &&
                          weights == Desc{kernel, memory::data_type::f32, ColumnTag::ABcd16b16a};
  if (!has_blocks || in[1] % channel_block != 0 || out[1] % channel_block != 0 || out[2] * out[3] > most_positions)
    return std::nullopt;
  ConvColumns found;
  found.n_ = static_cast<std::size_t>(in[0]);
  found.n_in_blocks_ = static_cast<std::size_t>(in[1] / channel_block);
  found.n_out_blocks_ = static_cast<std::size_t>(out[1] / channel_block);
  found.height_ = in[2];
  found.width_ = in[3];
  found.out_height_ = out[2];
  found.out_width_ = out[3];
  found.kernel_ = kernel[2];
  found.stride_ = window.strides[0];
  found.padding_ = window.padding_begin[0];
  found.pixel_bytes_ = static_cast<std::size_t>(channel_block) * memory::data_type_size(type);
  const memory::dim n_columns = in[1] * kernel[2] * kernel[3], n_pixels = in[0] * out[2] * out[3];
  const Desc columns{{1, n_columns, 1, n_pixels}, type, ColumnTag::aBcd16b},
      pixels{{1, out[1], 1, n_pixels}, type, ColumnTag::aBcd16b};
  const Dims one_by_one{out[1], n_columns, 1, 1};
  const Window window_1{{1, 1}, {1, 1}, {0, 0}, {0, 0}};
  const auto forward = describe_conv(engine, columns, {one_by_one, type, ColumnTag::any}, {}, pixels, window_1);
  if (!forward) return std::nullopt;
  found.described_ = describe_conv_weights(engine, columns, {one_by_one, memory::data_type::f32, ColumnTag::ABcd16b16a},
                                           {}, pixels, window_1, forward);
  if (!found.described_) return std::nullopt;
  return found;
}

void ConvColumns::gather(const std::byte* src, const std::byte* dst, std::byte* columns, std::byte* pixels) const {
  const auto n_positions = static_cast<std::size_t>(out_height_ * out_width_);
  const std::size_t map_bytes = n_positions * pixel_bytes_;
  for_parts(n_ * n_in_blocks_, 16, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) gather_columns(src, columns, i / n_in_blocks_, i % n_in_blocks_);
  });
  for_parts(n_, 16, [&](std::size_t begin, std::size_t end) {
    for (std::size_t sample = begin; sample < end; ++sample)
      for (std::size_t b = 0; b < n_out_blocks_; ++b)
        std::memcpy(pixels + (b * n_ + sample) * map_bytes, dst + (sample * n_out_blocks_ + b) * map_bytes, map_bytes);
  });
}

/// Gathers one block of channels of one sample: a map for each place of the kernel, 0 where the kernel extends beyond
/// the edge.
void ConvColumns::gather_columns(const std::byte* src, std::byte* columns, std::size_t sample,
                                 std::size_t in_block) const {
  const auto n_places = static_cast<std::size_t>(kernel_ * kernel_);
  const auto n_positions = static_cast<std::size_t>(out_height_ * out_width_);
  const std::byte* const map =
      src + (sample * n_in_blocks_ + in_block) * static_cast<std::size_t>(height_ * width_) * pixel_bytes_;
  for (std::size_t place = 0; place < n_places; ++place) {
    const auto kernel_row = static_cast<std::ptrdiff_t>(place) / kernel_,
               kernel_column = static_cast<std::ptrdiff_t>(place) % kernel_;
    std::byte* to = columns + ((in_block * n_places + place) * n_ + sample) * n_positions * pixel_bytes_;
    for (std::ptrdiff_t r = 0; r < out_height_; ++r) {
      const std::ptrdiff_t row = r * stride_ - padding_ + kernel_row;
      for (std::ptrdiff_t c = 0; c < out_width_; ++c, to += pixel_bytes_) {
        const std::ptrdiff_t column = c * stride_ - padding_ + kernel_column;
        const bool is_inside = row >= 0 && row < height_ && column >= 0 && column < width_;
        if (is_inside)
          std::memcpy(to, map + static_cast<std::size_t>(row * width_ + column) * pixel_bytes_, pixel_bytes_);
        else
          std::memset(to, 0, pixel_bytes_);
      }
    }
  }
}

ConvColumns::Times ConvColumns::measure(const dnnl::engine& engine, const Gradient& gradient) const {
  Run run{dnnl::stream{engine}};
  const memory src = some_memory(engine, gradient.src_desc()), dst = some_memory(engine, gradient.diff_dst_desc());
  memory columns = some_memory(engine, described_.src_desc()), pixels = some_memory(engine, described_.diff_dst_desc());
  const Primitive own = on_some_memory(engine, gradient, src, dst);
  const Primitive by_columns = on_some_memory(engine, described_, columns, pixels);
  return {shortest_s([&] { own.run(run); }), shortest_s([&] {
            gather(bytes_of(src), bytes_of(dst), bytes_of(columns), bytes_of(pixels));
            by_columns.run(run);
          })};
}

}  // namespace lockstep::nn::host

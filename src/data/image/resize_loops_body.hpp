// The loops themselves, for one instruction set: that of the file which includes this.
// Invariant: as resize_loops.hpp; nothing here has external linkage, so that no set's code runs in place of another's.
// Used by resize_loops_{plain,avx2,avx512}.cpp, each compiled with its own flags (lockstep_loop_sources).
#pragma once

#include "data/image/resize_loops.hpp"

namespace lockstep::data {
namespace {

constexpr std::int32_t tap_half = std::int32_t{1} << (tap_weight_bits - 1);

std::uint8_t to_level(std::int32_t sum) {
  const std::int32_t level = sum >> tap_weight_bits;
  return static_cast<std::uint8_t>(level < 255 ? level : 255);
}

template <std::size_t channels>
void resize_place(const std::uint8_t* in, const TapTable& across, std::size_t place, std::uint8_t* out) {
  const auto [first, n] = across.runs[place];
  const std::int32_t* weights = across.weights + place * across.stride;
  const std::uint8_t* pixel = in + first * channels;
  std::int32_t sums[channels];
  for (std::size_t c = 0; c < channels; ++c) sums[c] = tap_half;
  for (std::size_t k = 0; k < n; ++k)
    for (std::size_t c = 0; c < channels; ++c) sums[c] += pixel[k * channels + c] * weights[k];
  for (std::size_t c = 0; c < channels; ++c) out[place * channels + c] = to_level(sums[c]);
}

template <std::size_t channels>
void resize_row(const std::uint8_t* in, const TapTable& across, std::uint8_t* out) {
  for (std::size_t i = 0; i < across.n_out; ++i) resize_place<channels>(in, across, i, out);
}

// In pieces whose sums stay in the first cache.
void resize_column_run(const std::uint8_t* rows, std::size_t row_bytes, std::size_t n, const std::int32_t* weights,
                       std::uint8_t* out) {
  constexpr std::size_t piece = 1024;
  std::int32_t sums[piece];
  for (std::size_t begin = 0; begin < row_bytes; begin += piece) {
    const std::size_t length = row_bytes - begin < piece ? row_bytes - begin : piece;
    for (std::size_t j = 0; j < length; ++j) sums[j] = tap_half;
    for (std::size_t k = 0; k < n; ++k) {
      const std::uint8_t* row = rows + k * row_bytes + begin;
      const std::int32_t weight = weights[k];
      for (std::size_t j = 0; j < length; ++j) sums[j] += row[j] * weight;
    }
    for (std::size_t j = 0; j < length; ++j) out[begin + j] = to_level(sums[j]);
  }
}

}  // namespace
}  // namespace lockstep::data

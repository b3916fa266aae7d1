// The loops themselves, for one instruction set.
// Invariant: as resize_loops.hpp; nothing here but version() has external linkage.
// Compiled once for each instruction set (lockstep_loop_sources).
#include "data/image/resize_loops.hpp"

#ifdef __SSE4_1__  // part of AVX2
#include <immintrin.h>
#endif

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

#ifdef __SSE4_1__
[[gnu::always_inline]] inline __m128i load_colour(const std::uint8_t* pixel) {
  std::int32_t bytes;
  __builtin_memcpy(&bytes, pixel, sizeof(bytes));
  return _mm_cvtepu8_epi32(_mm_cvtsi32_si128(bytes));
}

// Four sums at a time, which the compiler does not find by itself, and as many taps at each place, those beyond its own
// with a weight of 0: the processor foresees where such a loop ends. The fourth lane takes a byte of the next pixel and
// writes one there, so the ends of a row go another way.
template <>
void resize_row<3>(const std::uint8_t* in, const TapTable& across, std::uint8_t* out) {
  std::size_t i = 0;
  const std::size_t n_taps = across.most_taps;
  const __m128i half = _mm_set1_epi32(tap_half);
  for (; i + 1 < across.n_out && across.runs[i].first + n_taps < across.n_in; ++i) {
    const std::uint8_t* pixel = in + across.runs[i].first * 3;
    const std::int32_t* weights = across.weights + i * across.stride;
    __m128i sums = half;
    for (std::size_t k = 0; k < n_taps; ++k)
      sums = _mm_add_epi32(sums, _mm_mullo_epi32(load_colour(pixel + k * 3), _mm_set1_epi32(weights[k])));
    const __m128i words = _mm_packus_epi32(_mm_srai_epi32(sums, tap_weight_bits), half);
    const std::int32_t bytes = _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
    __builtin_memcpy(out + i * 3, &bytes, sizeof(bytes));
  }
  for (; i < across.n_out; ++i) resize_place<3>(in, across, i, out);
}
#endif

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

constexpr ResizeLoops these_resize_loops{
    .gray_row = resize_row<1>, .colour_row = resize_row<3>, .column_run = resize_column_run};

}  // namespace

template <>
const ResizeLoops& ResizeLoops::version<core::this_loop_set>() noexcept {
  return these_resize_loops;
}

}  // namespace lockstep::data

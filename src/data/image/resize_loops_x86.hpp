// Rows of colours, four sums at a time: what the compiler does not find by itself.
// Invariant: as resize_loops_body.hpp; needs SSE4.1, which is part of AVX2.
// Used by resize_loops_{avx2,avx512}.cpp.
#pragma once

#include <immintrin.h>

#include "data/image/resize_loops_body.hpp"

namespace lockstep::data {
namespace {

[[gnu::always_inline]] inline __m128i load_colour(const std::uint8_t* pixel) {
  std::int32_t bytes;
  __builtin_memcpy(&bytes, pixel, sizeof(bytes));
  return _mm_cvtepu8_epi32(_mm_cvtsi32_si128(bytes));
}

// As many taps at each place, those beyond its own with a weight of 0: the processor foresees where such a loop ends.
// The fourth lane takes a byte of the next pixel and writes one there, so the ends of a row go another way.
void resize_colour_row(const std::uint8_t* in, const TapTable& across, std::uint8_t* out) {
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

}  // namespace
}  // namespace lockstep::data

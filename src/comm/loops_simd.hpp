// The vectors of each instruction set: their length, and what it does better than the compiler.
// Invariant: as loops_vectors.hpp.
// Used by loops.cpp.
#pragma once

#include "comm/loops_vectors.hpp"
#include "core/loop_sets.hpp"

#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace lockstep::comm {
namespace {

/// Short vectors, which most processors have; for others the compiler splits them.
template <core::LoopSet set>
struct Simd : Portable {
  static constexpr std::size_t vector_bytes = 16;
};

#ifdef __AVX2__
template <>
struct Simd<core::LoopSet::avx2> : Portable {
  static constexpr std::size_t vector_bytes = 32;
  static constexpr bool can_stream = true;

  template <std::size_t n>
  [[gnu::always_inline]] static Vector<std::uint32_t, n> widen(Vector<std::uint16_t, n> v) {
    if constexpr (n != 8)
      return Portable::widen<n>(v);
    else
      return __builtin_bit_cast(Vector<std::uint32_t, n>, _mm256_cvtepu16_epi32(__builtin_bit_cast(__m128i, v)));
  }

  template <std::size_t n>
  [[gnu::always_inline]] static Vector<std::uint16_t, n> narrow(Vector<std::uint32_t, n> v) {
    if constexpr (n != 8) {
      return Portable::narrow<n>(v);
    } else {
      const auto wide = __builtin_bit_cast(__m256i, v);
      const __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
      return __builtin_bit_cast(Vector<std::uint16_t, n>, packed);
    }
  }

  template <std::size_t n>
  [[gnu::always_inline]] static Vector<float, n> half_to_float(Vector<std::uint16_t, n> half) {
    if constexpr (n != 8) {
      return Portable::half_to_float<n>(half);
    } else {
      return __builtin_bit_cast(Vector<float, n>, _mm256_cvtph_ps(__builtin_bit_cast(__m128i, half)));
    }
  }

  template <std::size_t n>
  [[gnu::always_inline]] static Vector<std::uint16_t, n> float_to_half(Vector<float, n> value) {
    constexpr int nearest_even = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    if constexpr (n != 8)
      return Portable::float_to_half<n>(value);
    else
      return __builtin_bit_cast(Vector<std::uint16_t, n>,
                                _mm256_cvtps_ph(__builtin_bit_cast(__m256, value), nearest_even));
  }

  template <class V>
  [[gnu::always_inline]] static void stream(std::byte* to, V v) {
    if constexpr (sizeof(V) == 16)
      _mm_stream_si128(reinterpret_cast<__m128i*>(to), __builtin_bit_cast(__m128i, v));
    else
      _mm256_stream_si256(reinterpret_cast<__m256i*>(to), __builtin_bit_cast(__m256i, v));
  }
  [[gnu::always_inline]] static void fence() { _mm_sfence(); }
};
#endif

#ifdef __AVX512BW__
template <>
struct Simd<core::LoopSet::avx512> : Portable {
  static constexpr std::size_t vector_bytes = 64;
  static constexpr bool can_stream = true;

  // Uses masked conversions, because GCC 12 warns about an uninitialized operand inside the others.
  static constexpr __mmask16 all_lanes = 0xffff;

  template <std::size_t n>
  [[gnu::always_inline]] static Vector<std::uint32_t, n> widen(Vector<std::uint16_t, n> v) {
    if constexpr (n != 16)
      return Portable::widen<n>(v);
    else
      return __builtin_bit_cast(Vector<std::uint32_t, n>,
                                _mm512_maskz_cvtepu16_epi32(all_lanes, __builtin_bit_cast(__m256i, v)));
  }

  template <std::size_t n>
  [[gnu::always_inline]] static Vector<std::uint16_t, n> narrow(Vector<std::uint32_t, n> v) {
    if constexpr (n != 16)
      return Portable::narrow<n>(v);
    else
      return __builtin_bit_cast(Vector<std::uint16_t, n>,
                                _mm512_maskz_cvtepi32_epi16(all_lanes, __builtin_bit_cast(__m512i, v)));
  }

  template <std::size_t n>
  [[gnu::always_inline]] static Vector<float, n> half_to_float(Vector<std::uint16_t, n> half) {
    if constexpr (n != 16) {
      return Portable::half_to_float<n>(half);
    } else {
      return __builtin_bit_cast(Vector<float, n>, _mm512_maskz_cvtph_ps(all_lanes, __builtin_bit_cast(__m256i, half)));
    }
  }

  template <std::size_t n>
  [[gnu::always_inline]] static Vector<std::uint16_t, n> float_to_half(Vector<float, n> value) {
    constexpr int nearest_even = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    if constexpr (n != 16)
      return Portable::float_to_half<n>(value);
    else
      return __builtin_bit_cast(Vector<std::uint16_t, n>,
                                _mm512_maskz_cvtps_ph(all_lanes, __builtin_bit_cast(__m512, value), nearest_even));
  }

  template <class V>
  [[gnu::always_inline]] static void stream(std::byte* to, V v) {
    if constexpr (sizeof(V) == 32)
      _mm256_stream_si256(reinterpret_cast<__m256i*>(to), __builtin_bit_cast(__m256i, v));
    else
      _mm512_stream_si512(reinterpret_cast<__m512i*>(to), __builtin_bit_cast(__m512i, v));
  }
  [[gnu::always_inline]] static void fence() { _mm_sfence(); }
};
#endif

}  // namespace
}  // namespace lockstep::comm

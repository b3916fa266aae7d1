// What the body of a kernel may use, so that one source compiles for a GPU and for the host: functions for both,
// rounding to 16 bits, and elements in packs of 16 bytes.
// Invariant: the same bits on both; only marked code differs in the way to them.
// Used by kernel bodies (optim/cuda, nn/cuda, comm) and their tests.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/dtype.hpp"

#ifdef __CUDACC__
#define LOCKSTEP_HOST_DEVICE __host__ __device__
#else
#define LOCKSTEP_HOST_DEVICE
#endif

namespace lockstep::runtime::kernel {

using core::bfloat16;
using core::float16;

namespace detail {

#ifdef __CUDA_ARCH__
// One instruction each for bfloat16 on sm_90 and newer (two on sm_80, several before); a NaN keeps no payload.
__device__ inline std::uint16_t bfloat16_bits(float value) noexcept {
#if __CUDA_ARCH__ >= 800
  std::uint16_t bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
#else
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>(value != value ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
#endif
}
__device__ inline std::uint16_t float16_bits(float value) noexcept {
  std::uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}
__device__ inline float float16_value(std::uint16_t bits) noexcept {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}
#else
inline std::uint16_t bfloat16_bits(float value) noexcept { return bfloat16{value}.bits; }
inline std::uint16_t float16_bits(float value) noexcept { return float16{value}.bits; }
inline float float16_value(std::uint16_t bits) noexcept { return static_cast<float>(float16::from_bits(bits)); }
#endif

}  // namespace detail

LOCKSTEP_HOST_DEVICE inline float to_float(float value) noexcept { return value; }
LOCKSTEP_HOST_DEVICE inline float to_float(bfloat16 value) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}
LOCKSTEP_HOST_DEVICE inline float to_float(float16 value) noexcept { return detail::float16_value(value.bits); }

/// Rounds once, to nearest, ties to even.
template <class T>
LOCKSTEP_HOST_DEVICE T round_to(float value) noexcept {
  if constexpr (std::is_same_v<T, bfloat16>) {
    return bfloat16::from_bits(detail::bfloat16_bits(value));
  } else if constexpr (std::is_same_v<T, float16>) {
    return float16::from_bits(detail::float16_bits(value));
  } else {
    return value;
  }
}

/// a * b + c, rounded once; no other product is fused with a sum, because kernels are compiled without contraction.
LOCKSTEP_HOST_DEVICE inline float fused(float a, float b, float c) noexcept { return __builtin_fmaf(a, b, c); }
LOCKSTEP_HOST_DEVICE inline float root(float x) noexcept { return __builtin_sqrtf(x); }

/// Elements that are read or written at once; in memory 16-byte aligned if they fill 16 bytes.
template <class T, int n = 16 / static_cast<int>(sizeof(T))>
struct alignas(sizeof(T) * n) Pack {
  static constexpr int size = n;
  T values[n];

  LOCKSTEP_HOST_DEVICE T& operator[](int i) noexcept { return values[i]; }
  LOCKSTEP_HOST_DEVICE const T& operator[](int i) const noexcept { return values[i]; }
};

/// Pack `index` of an array: elements [index * n, (index + 1) * n).
template <class T, int n = 16 / static_cast<int>(sizeof(T))>
LOCKSTEP_HOST_DEVICE Pack<T, n> load(const T* elements, std::size_t index) noexcept {
#ifdef __CUDA_ARCH__
  return reinterpret_cast<const Pack<T, n>*>(elements)[index];
#else
  Pack<T, n> pack;
  std::memcpy(static_cast<void*>(&pack), elements + index * n, sizeof pack);
  return pack;
#endif
}

template <class T, int n>
LOCKSTEP_HOST_DEVICE void store(T* elements, std::size_t index, const Pack<T, n>& pack) noexcept {
#ifdef __CUDA_ARCH__
  reinterpret_cast<Pack<T, n>*>(elements)[index] = pack;
#else
  std::memcpy(static_cast<void*>(elements + index * n), &pack, sizeof pack);
#endif
}

/// As load() and store(), for data that is not read again soon, such as an optimizer's state: caches then keep other
/// data.
template <class T, int n = 16 / static_cast<int>(sizeof(T))>
LOCKSTEP_HOST_DEVICE Pack<T, n> load_once(const T* elements, std::size_t index) noexcept {
#ifdef __CUDA_ARCH__
  static_assert(sizeof(Pack<T, n>) % 16 == 0);
  Pack<T, n> pack;
  for (std::size_t i = 0; i < sizeof pack / 16; ++i)
    reinterpret_cast<uint4*>(&pack)[i] =
        __ldcs(reinterpret_cast<const uint4*>(elements) + index * (sizeof pack / 16) + i);
  return pack;
#else
  return load<T, n>(elements, index);
#endif
}

template <class T, int n>
LOCKSTEP_HOST_DEVICE void store_once(T* elements, std::size_t index, const Pack<T, n>& pack) noexcept {
#ifdef __CUDA_ARCH__
  static_assert(sizeof pack % 16 == 0);
  for (std::size_t i = 0; i < sizeof pack / 16; ++i)
    __stcs(reinterpret_cast<uint4*>(elements) + index * (sizeof pack / 16) + i,
           reinterpret_cast<const uint4*>(&pack)[i]);
#else
  store(elements, index, pack);
#endif
}

}  // namespace lockstep::runtime::kernel

// What kernels of networks share: packs of eight channels, and functions with the same bits on device and host.
// Invariant: activations have a multiple of 8 channels; those beyond the logical ones are 0 and stay 0.
// Used by nn/cuda/kernels.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "runtime/kernel/launch.hpp"

/// Prevents a GPU's compiler from unrolling the next loop, which would cost registers; or makes it unroll the next
/// loop, because an array indexed by a real loop would be in memory.
#ifdef __CUDA_ARCH__
#define LOCKSTEP_NO_UNROLL _Pragma("unroll 1")
#define LOCKSTEP_UNROLL _Pragma("unroll")
#else
#define LOCKSTEP_NO_UNROLL
#define LOCKSTEP_UNROLL
#endif

namespace lockstep::nn::cuda {

using runtime::kernel::fused;
using runtime::kernel::Grid;
using runtime::kernel::Pack;
using runtime::kernel::round_to;
using runtime::kernel::to_float;

inline constexpr int pack_channels = 8;

/// The limit on packs for kernels that divide their indices: they use 32 bits, because GPUs have no 64-bit division.
inline constexpr std::uint64_t n_indices = std::uint64_t{1} << 32;

/// Channels that one thread handles at once: 16 bytes of 16-bit elements, or twice as many bytes of floats. 16-bit
/// elements stay two to a word until they are read, because a GPU would use a register for each.
template <class T>
class alignas(sizeof(T) * pack_channels) Channels {
 public:
  LOCKSTEP_HOST_DEVICE float operator[](int k) const noexcept {
    if constexpr (std::is_same_v<T, float>) {
      return std::bit_cast<float>(words_[k]);
    } else if constexpr (std::is_same_v<T, core::bfloat16>) {
      return std::bit_cast<float>(k % 2 == 0 ? words_[k / 2] << 16 : words_[k / 2] & 0xffff0000U);
    } else {
      return to_float(T::from_bits(static_cast<std::uint16_t>(words_[k / 2] >> (k % 2 * 16))));
    }
  }
  /// Rounds. For two channels that share a word, set the first one first.
  LOCKSTEP_HOST_DEVICE void set(int k, float value) noexcept {
    if constexpr (std::is_same_v<T, float>) {
      words_[k] = std::bit_cast<std::uint32_t>(value);
    } else {
      const auto bits = static_cast<std::uint32_t>(round_to<T>(value).bits);
      words_[k / 2] = k % 2 == 0 ? bits : words_[k / 2] | bits << 16;
    }
  }

 private:
  std::uint32_t words_[sizeof(T) * pack_channels / 4] = {};
};

/// Pack `index` of an array.
template <class T>
LOCKSTEP_HOST_DEVICE Channels<T> load_channels(const T* elements, std::size_t index) noexcept {
#ifdef __CUDA_ARCH__
  return reinterpret_cast<const Channels<T>*>(elements)[index];
#else
  Channels<T> channels;
  std::memcpy(static_cast<void*>(&channels), elements + index * pack_channels, sizeof channels);
  return channels;
#endif
}
template <class T>
LOCKSTEP_HOST_DEVICE void store_channels(T* elements, std::size_t index, const Channels<T>& channels) noexcept {
#ifdef __CUDA_ARCH__
  reinterpret_cast<Channels<T>*>(elements)[index] = channels;
#else
  std::memcpy(static_cast<void*>(elements + index * pack_channels), &channels, sizeof channels);
#endif
}
/// Zeros if `elements` is null.
template <class T>
LOCKSTEP_HOST_DEVICE Channels<T> load_channels_or_0(const T* elements, std::size_t index) noexcept {
  return elements == nullptr ? Channels<T>{} : load_channels(elements, index);
}

/// e^x within 2 units of the last place, the same bits on both sides.
LOCKSTEP_HOST_DEVICE inline float exponential(float x) noexcept {
  if (x < -104) return 0;
  if (x > 88.8F) return std::numeric_limits<float>::infinity();
  constexpr float shifter = 12582912;  // 1.5 * 2^23: adding it rounds to a whole number, in the last bits
  const float shifted = fused(x, 1.44269504F, shifter);
  const float n = shifted - shifter;
  const int exponent = std::bit_cast<std::int32_t>(shifted) - 0x4b400000;
  const float r = fused(n, -1.42860677e-6F, fused(n, -0.693145752F, x));  // ln 2 in two parts, n of them exact
  float p = 1.98756915e-4F;
  p = fused(p, r, 1.39819995e-3F);
  p = fused(p, r, 8.33345205e-3F);
  p = fused(p, r, 4.16657962e-2F);
  p = fused(p, r, 1.66666657e-1F);
  p = fused(p, r, 0.5F);
  p = fused(fused(p, r, 1), r, 1);
  // In two steps, because powers below 2^-126 and 2^128 are not normal numbers. NaN may have any exponent, and stays
  // NaN.
  const int first = exponent / 2;
  const auto power = [](int e) { return std::bit_cast<float>(static_cast<std::uint32_t>(e + 127) << 23); };
  return p * power(first) * power(exponent - first);
}

}  // namespace lockstep::nn::cuda

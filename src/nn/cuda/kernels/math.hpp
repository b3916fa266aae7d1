// What kernels of networks share: packs of eight channels, and functions with the same bits on device and host.
// Invariant: activations have a multiple of 8 channels; those beyond the logical ones are 0 and stay 0.
// Used by the kernels of nn/cuda and nn/ops.
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
using runtime::kernel::region;
using runtime::kernel::round_to;
using runtime::kernel::to_float;

/// Enqueues a kernel of nn/cuda or nn/ops: for its grid(), or else for n() elements. Its touches(tell) calls
/// tell(name, reads, writes) with all memory that it touches. Defined in enqueue.hpp, for files *.cu.
template <class Kernel>
void enqueue(runtime::Stream& stream, const Kernel& kernel);

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
/// Stores f(k) as channel k of the pack, rounded.
template <class T, class F>
LOCKSTEP_HOST_DEVICE void store_each(T* elements, std::size_t index, const F& f) noexcept {
  Channels<T> channels;
  for (int k = 0; k < pack_channels; ++k) channels.set(k, f(k));
  store_channels(elements, index, channels);
}
/// Zeros if `elements` is null.
template <class T>
LOCKSTEP_HOST_DEVICE Channels<T> load_channels_or_0(const T* elements, std::size_t index) noexcept {
  return elements == nullptr ? Channels<T>{} : load_channels(elements, index);
}

/// e^x for x <= 0, within (2 + |x| / 2) 2^-24 of its value, the same bits on both sides; 0 below the smallest normal
/// number. NaN stays NaN.
LOCKSTEP_HOST_DEVICE inline float exponential(float x) noexcept {
  constexpr float least = -87.33F, log2_e = 1.44269504F;
  constexpr float shifter = 12582912;  // 1.5 * 2^23: adding it rounds to a whole number, in the last bits
  const float shifted = fused(x, log2_e, shifter);
  const float f = fused(x, log2_e, shifter - shifted);  // 2^f by a polynomial
  float p = 1.55946778e-4F;
  p = fused(p, f, 1.34066434e-3F);
  p = fused(p, f, 9.61769279e-3F);
  p = fused(p, f, 5.55031039e-2F);
  p = fused(p, f, 2.40226522e-1F);
  p = fused(p, f, 6.93147242e-1F);
  p = fused(p, f, 1);
  const float power = std::bit_cast<float>((std::bit_cast<std::uint32_t>(shifted) << 23) + 0x3f800000U);
  return x < least ? 0 : p * power;
}

}  // namespace lockstep::nn::cuda

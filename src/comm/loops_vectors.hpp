// Vectors of elements: types, 16-bit float conversions, the reduction operators and division, for any number of lanes.
// Invariant: a set of loops defines no weak symbol, because the linker could choose it for code that must run on any
// processor. Everything is in an unnamed namespace; of std and core, only constants and always-inlined functions are
// used.
// Used by loops.cpp and loops_simd.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/dtype.hpp"

namespace lockstep::comm {
namespace {

/// Vectors use the extension that GCC and Clang share: element-wise operators on any processor.
template <class T, std::size_t n>
struct VectorOf {
  typedef T type __attribute__((vector_size(n * sizeof(T))));
};
template <class T, std::size_t n>
using Vector = typename VectorOf<T, n>::type;

template <class V>
using Lane = std::remove_cvref_t<decltype(V{}[0])>;
template <class V>
inline constexpr std::size_t n_lanes_of = sizeof(V) / sizeof(Lane<V>);

/// The type of an element in memory, and the type in which it is computed.
template <class T>
struct Element {
  using Memory = T;
  using Value = T;
};
template <>
struct Element<core::float16> {
  using Memory = std::uint16_t;
  using Value = float;
};
template <>
struct Element<core::bfloat16> {
  using Memory = std::uint16_t;
  using Value = float;
};

/// Converts between the bits of a 16-bit float and an integer of the same order: flips all bits except the sign of
/// negative numbers.
template <class V>
[[gnu::always_inline]] inline V turn_negatives(V v) {
  return v ^ (v >> 15 & 0x7fff);
}

/// A 16-bit float for Min and Max: an integer with the same order, with -0 below +0 and every NaN at `nan`, beyond all
/// others. Nothing is converted, and twice as many fit a vector.
template <std::int16_t infinity, std::int16_t nan>
struct Ordered {
  template <class V>
  [[gnu::always_inline]] static V from_bits(V bits) {
    return (bits & 0x7fff) > infinity ? V{} + nan : turn_negatives(bits);
  }
};
template <std::int16_t infinity, std::int16_t nan>
struct Element<Ordered<infinity, nan>> {
  using Memory = std::int16_t;
  using Value = std::int16_t;
};
template <class T>
inline constexpr bool is_ordered = false;
template <std::int16_t infinity, std::int16_t nan>
inline constexpr bool is_ordered<Ordered<infinity, nan>> = true;

template <class V>
[[gnu::always_inline]] inline V load(const std::byte* from) {
  V v;
  __builtin_memcpy(&v, from, sizeof(v));
  return v;
}

template <class V>
[[gnu::always_inline]] inline void store(std::byte* to, V v) {
  __builtin_memcpy(to, &v, sizeof(v));
}

/// The operations that an instruction set may do better than the compiler: conversions of 16-bit floats, stores past
/// the caches. The policies of the sets derive from this one, which works on all; `n` is the number of lanes.
struct Portable {
  static constexpr bool can_stream = false;

  template <std::size_t n>
  [[gnu::always_inline]] static Vector<std::uint32_t, n> widen(Vector<std::uint16_t, n> v) {
    return __builtin_convertvector(v, Vector<std::uint32_t, n>);
  }

  /// The values must fit.
  template <std::size_t n>
  [[gnu::always_inline]] static Vector<std::uint16_t, n> narrow(Vector<std::uint32_t, n> v) {
    return __builtin_convertvector(v, Vector<std::uint16_t, n>);
  }

  /// Exact, except that a signaling NaN may become quiet.
  template <std::size_t n>
  [[gnu::always_inline]] static Vector<float, n> half_to_float(Vector<std::uint16_t, n> half) {
    using Bits = Vector<std::int32_t, n>;
    using Floats = Vector<float, n>;
    const Bits h = __builtin_convertvector(half, Bits);
    const Bits magnitude = (h & 0x7fff) << 13;
    const Bits rebiased = magnitude + ((127 - 15) << 23);
    // Subnormals: puts the fraction under the exponent of 2^-14 and subtracts its implicit one.
    const Floats subnormal = __builtin_bit_cast(Floats, rebiased + (1 << 23)) - 0x1p-14f;
    const Bits finite = magnitude < (1 << 23) ? __builtin_bit_cast(Bits, subnormal) : rebiased;
    const Bits all = magnitude < (31 << 23) ? finite : (magnitude | (255 << 23));
    return __builtin_bit_cast(Floats, all | ((h & 0x8000) << 16));
  }

  /// To nearest, ties to even; a NaN keeps its sign and upper fraction bits and is quieted, as F16C does.
  template <std::size_t n>
  [[gnu::always_inline]] static Vector<std::uint16_t, n> float_to_half(Vector<float, n> value) {
    using Bits = Vector<std::int32_t, n>;
    using Floats = Vector<float, n>;
    const Bits bits = __builtin_bit_cast(Bits, value);
    const Bits magnitude = bits & 0x7fffffff;
    // The normal range: rounds on the last kept bit; a carry into the exponent is correct, up to infinity.
    const Bits normal = (magnitude - ((127 - 15) << 23) + 0xfff + ((magnitude >> 13) & 1)) >> 13;
    // Below 2^-14: adding 0.5 aligns the last kept bit with float's, so the addition itself rounds.
    const Bits subnormal = __builtin_bit_cast(Bits, __builtin_bit_cast(Floats, magnitude) + 0.5f) - (126 << 23);
    const Bits nan = (magnitude >> 13 & 0x3ff) | 0x7e00;
    const Bits finite = magnitude < (113 << 23) ? subnormal : normal;
    const Bits not_finite = magnitude > (255 << 23) ? nan : Bits{} + 0x7c00;
    const Bits all = magnitude < (143 << 23) ? finite : not_finite;
    return __builtin_convertvector(all | (bits >> 16 & 0x8000), Vector<std::uint16_t, n>);
  }

  template <class V>
  [[gnu::always_inline]] static void stream(std::byte* to, V v) {
    store(to, v);
  }
  [[gnu::always_inline]] static void fence() {}
};

template <class Simd, std::size_t n>
[[gnu::always_inline]] inline Vector<float, n> bfloat_to_float(Vector<std::uint16_t, n> half) {
  return __builtin_bit_cast(Vector<float, n>, Simd::template widen<n>(half) << 16);
}

/// To nearest, ties to even; a NaN keeps its sign and upper fraction bits and is quieted.
template <class Simd, std::size_t n>
[[gnu::always_inline]] inline Vector<std::uint16_t, n> float_to_bfloat(Vector<float, n> value) {
  using Bits = Vector<std::uint32_t, n>;
  const Bits bits = __builtin_bit_cast(Bits, value);
  const Bits rounded = bits + 0x7fffu + (bits >> 16 & 1u);
  const auto magnitude = __builtin_bit_cast(Vector<std::int32_t, n>, bits & 0x7fffffffu);
  const Bits all = magnitude > (255 << 23) ? (bits | (1u << 22)) : rounded;
  return Simd::template narrow<n>(all >> 16);
}

/// Converts integers to unsigned, whose arithmetic wraps; leaves floats unchanged.
template <class V>
[[gnu::always_inline]] inline auto wrapping(V v) {
  if constexpr (std::is_integral_v<Lane<V>>)
    return __builtin_bit_cast(Vector<std::make_unsigned_t<Lane<V>>, n_lanes_of<V>>, v);
  else
    return v;
}

struct Sum {
  template <class V>
  [[gnu::always_inline]] static V apply(V a, V b) {
    return __builtin_bit_cast(V, wrapping(a) + wrapping(b));
  }
};

struct Prod {
  template <class V>
  [[gnu::always_inline]] static V apply(V a, V b) {
    return __builtin_bit_cast(V, wrapping(a) * wrapping(b));
  }
};

/// Returns `chosen` if neither a nor b is a NaN; else a NaN. `chosen` is the result of x86's min or max instruction on
/// (b, a): `a`, unless `b` is strictly beyond it. So it already keeps a NaN in `a`, but ignores one in `b`.
template <class V>
[[gnu::always_inline]] inline V or_nan(V chosen, V b) {
  if constexpr (std::is_floating_point_v<Lane<V>>)
    return b == b ? chosen : b;
  else
    return chosen;
}

// The first of equal values (+0 and -0) stays.
struct Min {
  template <class V>
  [[gnu::always_inline]] static V apply(V a, V b) {
    return or_nan(b < a ? b : a, b);
  }
};

struct Max {
  template <class V>
  [[gnu::always_inline]] static V apply(V a, V b) {
    return or_nan(b > a ? b : a, b);
  }
};

/// Truncates toward zero. Narrow integers are divided as floats that hold the dividend exactly: a quotient is either
/// whole or at least 1/divisor below the next whole number, more than rounding can bridge.
template <class T>
[[gnu::always_inline]] inline T quotient(T dividend, int divisor) {
  if constexpr (sizeof(T) == 8)
    return dividend / static_cast<T>(divisor);
  else if constexpr (sizeof(T) == 4)
    return static_cast<T>(static_cast<double>(dividend) / static_cast<double>(divisor));
  else
    return static_cast<T>(static_cast<float>(dividend) / static_cast<float>(divisor));
}

template <class V>
[[gnu::always_inline]] inline V divide(V v, int divisor) {
  if constexpr (std::is_floating_point_v<Lane<V>>) {
    return v / static_cast<Lane<V>>(divisor);
  } else {
    Lane<V> lanes[n_lanes_of<V>];  // x86 has no integer vector division: left to the compiler's vectorizer
    __builtin_memcpy(lanes, &v, sizeof(v));
    for (Lane<V>& lane : lanes) lane = quotient(lane, divisor);
    __builtin_memcpy(&v, lanes, sizeof(v));
    return v;
  }
}

}  // namespace
}  // namespace lockstep::comm

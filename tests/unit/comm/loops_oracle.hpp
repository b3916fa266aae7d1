// The results of the loops, computed one element at a time, and memory that detects stray writes.
// Invariant: shares nothing with the loops except core's conversions of 16-bit floats.
// Used by loops_test.cpp.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "comm/collective.hpp"
#include "core/dtype.hpp"

namespace lockstep::comm::test {

using core::bfloat16;
using core::float16;

template <class T>
inline constexpr bool is_half = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;
template <class T>
using ValueOf = std::conditional_t<is_half<T>, float, T>;

template <class V>
V apply(ReduceOp op, V a, V b) {
  if constexpr (std::is_floating_point_v<V>)  // min and max of a NaN are NaN, like sums
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<V>::quiet_NaN();
  switch (op) {
    case ReduceOp::min: return b < a ? b : a;
    case ReduceOp::max: return b > a ? b : a;
    case ReduceOp::prod:
      if constexpr (std::is_integral_v<V>)
        return static_cast<V>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
      else
        return a * b;
    case ReduceOp::sum:
    case ReduceOp::avg: break;
  }
  if constexpr (std::is_integral_v<V>)
    return static_cast<V>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  else
    return a + b;
}

template <class V>
V quotient(V value, int divisor) {
  if constexpr (std::is_floating_point_v<V>)
    return value / static_cast<V>(divisor);
  else if constexpr (std::is_signed_v<V>)
    return static_cast<V>(static_cast<std::int64_t>(value) / divisor);
  else
    return static_cast<V>(static_cast<std::uint64_t>(value) / static_cast<std::uint64_t>(divisor));
}

template <class T>
T scalar_fold(ReduceOp op, const std::vector<std::vector<T>>& sources, std::size_t n_sources, std::size_t i,
              int divisor) {
  auto value = static_cast<ValueOf<T>>(sources[0][i]);
  for (std::size_t s = 1; s < n_sources; ++s) {
    const auto next = static_cast<ValueOf<T>>(sources[s][i]);
    if (is_half<T> && value == next && (op == ReduceOp::min) == std::signbit(static_cast<float>(next)) &&
        (op == ReduceOp::min || op == ReduceOp::max))
      value = next;  // for zeros: min and max of 16-bit floats distinguish -0 from +0
    else
      value = apply(op, value, next);
  }
  return static_cast<T>(divisor == 1 ? value : quotient(value, divisor));
}

template <class T>
std::vector<T> special_values() {
  if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    return {
        T{0}, T{1}, T{2}, T{100}, Limits::max(), Limits::min(), static_cast<T>(-1), static_cast<T>(Limits::max() / 2)};
  } else {
    using Limits = std::numeric_limits<ValueOf<T>>;
    std::vector<T> values;
    for (const double v :
         {0.0, 1.0, 1.5, 3.0, 1.0 / 3, 65504.0, 65519.0, 65520.0, 0x1p-14, 0x1.8p-24, 0x1p-25, 0x1p-133})
      for (const double sign : {1.0, -1.0}) values.push_back(static_cast<T>(static_cast<ValueOf<T>>(sign * v)));
    for (const auto v : {Limits::infinity(), Limits::quiet_NaN(), Limits::max(), Limits::min(), Limits::denorm_min()})
      for (const auto w : {v, -v}) values.push_back(static_cast<T>(w));
    return values;
  }
}

/// Special values, any bits, and values near one, for which sums round and products do not overflow.
template <class T>
std::vector<T> random_values(std::size_t n, std::mt19937_64& random) {
  const std::vector<T> specials = special_values<T>();
  std::vector<T> values(n);
  for (T& value : values) {
    const std::uint64_t bits = random();
    if (bits % 8 == 0) {
      value = specials[(bits >> 8) % specials.size()];
    } else if (bits % 8 < 4 || std::is_integral_v<T>) {
      const std::uint64_t any = random();
      std::memcpy(static_cast<void*>(&value), &any, sizeof(T));
    } else {
      value = static_cast<T>(static_cast<ValueOf<T>>(std::ldexp(static_cast<double>(bits >> 11), -53) * 3 - 1));
    }
  }
  return values;
}

/// Memory for n elements that starts `shift` elements after a cache line and detects changes of its surroundings.
template <class T>
class Guarded {
 public:
  Guarded(std::size_t n, std::size_t shift) : bytes_(n * sizeof(T) + shift * sizeof(T) + 3 * guard, fill), n_{n} {
    void* start = bytes_.data() + guard;
    std::size_t space = bytes_.size() - guard;
    begin_ =
        static_cast<std::byte*>(std::align(guard, n * sizeof(T) + shift * sizeof(T), start, space)) + shift * sizeof(T);
  }
  Guarded(const std::vector<T>& values, std::size_t shift) : Guarded(values.size(), shift) {
    if (n_ != 0) std::memcpy(begin_, values.data(), n_ * sizeof(T));
  }

  [[nodiscard]] std::byte* data() { return begin_; }
  [[nodiscard]] bool is_guard_intact() const {
    const std::byte* end = begin_ + n_ * sizeof(T);
    const auto is_fill = [](std::byte b) { return b == fill; };
    return std::all_of(bytes_.data(), static_cast<const std::byte*>(begin_), is_fill) &&
           std::all_of(end, bytes_.data() + bytes_.size(), is_fill);
  }
  [[nodiscard]] T operator[](std::size_t i) const {
    T value;
    std::memcpy(static_cast<void*>(&value), begin_ + i * sizeof(T), sizeof(T));
    return value;
  }

 private:
  static constexpr std::size_t guard = 64;
  static constexpr std::byte fill{0xa5};
  std::vector<std::byte> bytes_;
  std::size_t n_;
  std::byte* begin_ = nullptr;
};

template <class T>
bool is_same(T a, T b) {
  if constexpr (!std::is_integral_v<T>)
    if (std::isnan(static_cast<ValueOf<T>>(a)) && std::isnan(static_cast<ValueOf<T>>(b))) return true;
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

template <class T>
std::string show(T value) {
  return std::to_string(static_cast<ValueOf<T>>(value));
}

/// Expects that the first n elements equal the expected ones, bit for bit (a NaN equals any NaN), and the guards are
/// untouched.
template <class T>
testing::AssertionResult holds(const Guarded<T>& actual, const std::vector<T>& expected, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i)
    if (!is_same(actual[i], expected[i]))
      return testing::AssertionFailure() << "element " << i << " of " << n << " is " << show(actual[i]) << ", expected "
                                         << show(expected[i]);
  if (!actual.is_guard_intact()) return testing::AssertionFailure() << "bytes outside the " << n << " elements changed";
  return testing::AssertionSuccess();
}

/// Sources of one type at different alignments, and the result of folding the first of them.
template <class T>
struct Inputs {
  std::vector<std::vector<T>> values;
  std::vector<Guarded<T>> memory;
  std::vector<const std::byte*> pointers;

  Inputs(std::size_t n_sources, std::size_t n) {
    std::mt19937_64 random{20240607};
    for (std::size_t s = 0; s < n_sources; ++s) values.push_back(random_values<T>(n, random));
    for (std::size_t s = 0; s < n_sources; ++s) memory.emplace_back(values[s], s % 5);
    for (Guarded<T>& source : memory) pointers.push_back(source.data());
  }

  [[nodiscard]] std::vector<T> expected(ReduceOp op, std::size_t n_sources, int divisor) const {
    std::vector<T> result(values[0].size());
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = scalar_fold(op, values, n_sources, i, divisor);
    return result;
  }
};

}  // namespace lockstep::comm::test

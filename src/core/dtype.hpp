// The twelve element types, and the two 16-bit floats that C++20 lacks.
// Invariant: conversions to 16 bits round once, to nearest, ties to even; NaN stays NaN.
// Used by comm/ (kernels, plans), reduce_all/ and everything that stores elements.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

namespace lockstep::core {

/// Enumerators equal the words of the command line.
enum class DType : std::uint8_t {
  int8,
  uint8,
  int16,
  uint16,
  int32,
  uint32,
  int64,
  uint64,
  float16,
  bfloat16,
  float32,
  float64
};

inline constexpr std::array<DType, 12> all_dtypes{DType::int8,    DType::uint8,    DType::int16,   DType::uint16,
                                                  DType::int32,   DType::uint32,   DType::int64,   DType::uint64,
                                                  DType::float16, DType::bfloat16, DType::float32, DType::float64};

/// IEEE 754 binary16: 1 sign, 5 exponent, 10 fraction bits.
struct float16 {
  std::uint16_t bits = 0;
  float16() = default;
  explicit float16(float value) noexcept;
  [[nodiscard]] explicit operator float() const noexcept;
  static constexpr float16 from_bits(std::uint16_t bits) noexcept { return std::bit_cast<float16>(bits); }
};

/// The upper half of a float32: 1 sign, 8 exponent, 7 fraction bits.
struct bfloat16 {
  std::uint16_t bits = 0;
  bfloat16() = default;
  explicit bfloat16(float value) noexcept;
  [[nodiscard]] explicit operator float() const noexcept;
  static constexpr bfloat16 from_bits(std::uint16_t bits) noexcept { return std::bit_cast<bfloat16>(bits); }
};

[[nodiscard]] std::string_view name(DType dtype) noexcept;
[[nodiscard]] std::size_t size_of(DType dtype) noexcept;
[[nodiscard]] bool is_floating(DType dtype) noexcept;

/// Finds a type by its name or a usual alias (nccl-tests' `half`, `float`, `double`, `bf16`, ...); nothing if unknown.
[[nodiscard]] std::optional<DType> find_dtype(std::string_view word) noexcept;

/// Calls `f(std::type_identity<T>{})` with the C++ type of `dtype`.
template <class F>
decltype(auto) visit(DType dtype, F&& f) {
  switch (dtype) {
    case DType::int8: return f(std::type_identity<std::int8_t>{});
    case DType::uint8: return f(std::type_identity<std::uint8_t>{});
    case DType::int16: return f(std::type_identity<std::int16_t>{});
    case DType::uint16: return f(std::type_identity<std::uint16_t>{});
    case DType::int32: return f(std::type_identity<std::int32_t>{});
    case DType::uint32: return f(std::type_identity<std::uint32_t>{});
    case DType::int64: return f(std::type_identity<std::int64_t>{});
    case DType::uint64: return f(std::type_identity<std::uint64_t>{});
    case DType::float16: return f(std::type_identity<float16>{});
    case DType::bfloat16: return f(std::type_identity<bfloat16>{});
    case DType::float32: return f(std::type_identity<float>{});
    case DType::float64: break;
  }
  return f(std::type_identity<double>{});
}

}  // namespace lockstep::core

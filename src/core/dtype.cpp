#include "core/dtype.hpp"

#include "core/ascii.hpp"

namespace lockstep::core {
namespace {

// value / 2^shift, rounded to nearest, ties to even; 1 <= shift <= 31, and the sum must not overflow.
constexpr std::uint32_t shift_right_to_even(std::uint32_t value, std::uint32_t shift) noexcept {
  const std::uint32_t is_odd = (value >> shift) & 1u;
  return (value + (1u << (shift - 1)) - 1u + is_odd) >> shift;
}

// Rounding may carry into the exponent, which correctly gives the next power of two.
std::uint16_t float16_bits(float value) noexcept {
  constexpr std::uint32_t infinity = 0x7f80'0000, overflow = 0x477f'f000;  // 65520: half way from the largest to 2^16
  constexpr std::uint32_t smallest_normal = 0x3880'0000, rebias = (127u - 15u) << 23;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fff'ffffu;
  std::uint32_t result = 0;
  if (magnitude > infinity) {
    result = 0x7e00u | ((magnitude >> 13) & 0x03ffu);
  } else if (magnitude >= overflow) {
    result = 0x7c00u;
  } else if (magnitude >= smallest_normal) {
    result = shift_right_to_even(magnitude - rebias, 13);
  } else if (const std::uint32_t exponent = magnitude >> 23; exponent >= 102) {  // at least 2^-25, half the smallest
    result = shift_right_to_even((magnitude & 0x007f'ffffu) | 0x0080'0000u, 126 - exponent);
  }
  return static_cast<std::uint16_t>(sign | result);
}

float float16_value(std::uint16_t half) noexcept {
  const std::uint32_t sign = (half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fu;
  const std::uint32_t fraction = half & 0x03ffu;
  std::uint32_t magnitude = 0;
  if (exponent == 0) {
    magnitude = std::bit_cast<std::uint32_t>(static_cast<float>(fraction) * 0x1p-24f);
  } else if (exponent < 31) {
    magnitude = ((exponent + 127 - 15) << 23) | (fraction << 13);
  } else {
    const std::uint32_t quiet = fraction != 0 ? 0x0040'0000u : 0u;
    magnitude = 0x7f80'0000u | quiet | (fraction << 13);
  }
  return std::bit_cast<float>(sign | magnitude);
}

std::uint16_t bfloat16_bits(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const bool is_nan = (bits & 0x7fff'ffffu) > 0x7f80'0000u;
  return static_cast<std::uint16_t>(is_nan ? (bits >> 16) | 0x0040u : shift_right_to_even(bits, 16));
}

float bfloat16_value(std::uint16_t half) noexcept {
  const std::uint32_t quiet = (half & 0x7fffu) > 0x7f80u ? 0x0040'0000u : 0u;
  return std::bit_cast<float>((static_cast<std::uint32_t>(half) << 16) | quiet);
}

constexpr std::array<std::string_view, all_dtypes.size()> names{"int8",    "uint8",    "int16",   "uint16",
                                                                "int32",   "uint32",   "int64",   "uint64",
                                                                "float16", "bfloat16", "float32", "float64"};

struct Alias {
  std::string_view word;
  DType dtype;
};

constexpr std::array aliases{
    Alias{"char", DType::int8},      Alias{"int", DType::int32},    Alias{"half", DType::float16},
    Alias{"fp16", DType::float16},   Alias{"f16", DType::float16},  Alias{"bf16", DType::bfloat16},
    Alias{"float", DType::float32},  Alias{"fp32", DType::float32}, Alias{"f32", DType::float32},
    Alias{"double", DType::float64}, Alias{"fp64", DType::float64}, Alias{"f64", DType::float64}};

}  // namespace

float16::float16(float value) noexcept : bits{float16_bits(value)} {}
float16::operator float() const noexcept { return float16_value(bits); }

bfloat16::bfloat16(float value) noexcept : bits{bfloat16_bits(value)} {}
bfloat16::operator float() const noexcept { return bfloat16_value(bits); }

std::string_view name(DType dtype) noexcept { return names[static_cast<std::size_t>(dtype)]; }

std::size_t size_of(DType dtype) noexcept {
  return visit(dtype, []<class T>(std::type_identity<T>) { return sizeof(T); });
}

bool is_floating(DType dtype) noexcept {
  return visit(dtype, []<class T>(std::type_identity<T>) { return !std::is_integral_v<T>; });
}

std::optional<DType> find_dtype(std::string_view word) noexcept {
  for (const DType dtype : all_dtypes) {
    if (equal_ignoring_case(word, name(dtype))) return dtype;
  }
  for (const Alias& alias : aliases) {
    if (equal_ignoring_case(word, alias.word)) return alias.dtype;
  }
  return std::nullopt;
}

}  // namespace lockstep::core

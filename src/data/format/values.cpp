#include "data/format/values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

namespace lockstep::data {
namespace {

template <class T>
T load(std::span<const std::byte> values, std::size_t i) noexcept {
  T value;
  std::memcpy(&value, values.data() + i * sizeof(T), sizeof(T));
  return value;
}

template <class T>
bool is_finite(T value) noexcept {
  return std::isfinite(static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(value));
}

/// Whether float32 changes some numbers of the type.
template <class T>
constexpr bool may_lose = std::is_same_v<T, double> || (std::is_integral_v<T> && sizeof(T) >= sizeof(float));

template <class T>
bool is_beyond_float(T value) noexcept {
  return std::is_same_v<T, double> && std::isinf(static_cast<float>(value));
}

// Whether float32 rounds this whole number. Doubles above 2^53 are not exact themselves and do not count.
template <class T>
bool is_rounded(T value) noexcept {
  constexpr T all_held = 1 << 24;
  if (value <= all_held && (!std::is_signed_v<T> || value >= T{} - all_held)) return false;
  if constexpr (std::is_same_v<T, double>) {
    constexpr double exact = 9007199254740992.0;
    if (std::abs(value) > exact || value != std::trunc(value)) return false;
  }
  return static_cast<long double>(static_cast<float>(value)) != static_cast<long double>(value);
}

// The last one is netCDF's; such marks are far from all real values.
template <class T>
bool is_mark(T value) noexcept {
  constexpr double of_netcdf = 9.969209968386869e36;
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>)
    if (value == static_cast<T>(of_netcdf)) return true;
  if constexpr (std::is_signed_v<T> && sizeof(T) > 1) {
    if (value > T{-999}) return false;
    if (value == T{-999} || value == T{-9999}) return true;
    if constexpr (sizeof(T) > 2) return value == T{-99999} || value == T{-999999};
  }
  return false;
}

template <class T>
void count_value(T value, CountedValues& counted) noexcept {
  if (counted.n++ == 0) std::memcpy(counted.first.data(), &value, sizeof(T));
}

void add_counted(CountedValues& sum, const CountedValues& later) noexcept {
  if (sum.n == 0) sum.first = later.first;
  sum.n += later.n;
}

}  // namespace

void add_values(core::DType dtype, std::span<const std::byte> values, ValueFacts& facts) noexcept {
  core::visit(dtype, [&]<class T>(std::type_identity<T>) {
    using Number = std::conditional_t<std::is_arithmetic_v<T>, T, float>;
    const std::size_t n = values.size() / sizeof(T);
    Number highest = std::numeric_limits<Number>::lowest();
    bool has_finite = false;
    for (std::size_t i = 0; i < n; ++i) {
      const auto value = static_cast<Number>(load<T>(values, i));
      if constexpr (std::is_floating_point_v<Number>) {
        if (!is_finite(value)) {
          ++facts.n_not_finite;
          continue;
        }
      }
      has_finite = true;
      highest = std::max(highest, value);
      if (is_mark(value)) count_value(value, facts.marks);
      if constexpr (may_lose<Number>) {
        if (is_beyond_float(value))
          count_value(value, facts.beyond);
        else if (is_rounded(value))
          count_value(value, facts.rounded);
      }
    }
    facts.n_values += n;
    if (has_finite) facts.highest = std::max(facts.highest, static_cast<double>(highest));
  });
}

void add(ValueFacts& facts, const ValueFacts& later) noexcept {
  facts.n_values += later.n_values;
  facts.n_not_finite += later.n_not_finite;
  add_counted(facts.rounded, later.rounded);
  add_counted(facts.beyond, later.beyond);
  add_counted(facts.marks, later.marks);
  facts.highest = std::max(facts.highest, later.highest);
}

std::string describe_value(core::DType dtype, const CountedValues& counted) {
  return core::visit(dtype, [&]<class T>(std::type_identity<T>) {
    using Number = std::conditional_t<std::is_arithmetic_v<T>, T, float>;
    return fmt::format("{}", load<Number>(counted.first, 0));
  });
}

std::string describe_loss(core::DType dtype, const CountedValues& counted) {
  return core::visit(dtype, [&]<class T>(std::type_identity<T>) -> std::string {
    if constexpr (may_lose<T>) {
      const T value = load<T>(counted.first, 0);
      const auto narrow = static_cast<float>(value);
      const auto wide = static_cast<long double>(value);
      return std::isinf(narrow) ? fmt::format("{} (as float32 {})", value, narrow)
                                : fmt::format("{:.0f} (as float32 {:.0f})", wide, narrow);
    } else {
      return "";
    }
  });
}

std::optional<BadLabel> find_bad_label(const SetSpec& spec, std::span<const std::byte> y) {
  if (spec.classes.empty() || core::is_floating(spec.y.dtype)) return std::nullopt;
  return core::visit(spec.y.dtype, [&]<class T>(std::type_identity<T>) -> std::optional<BadLabel> {
    if constexpr (std::is_integral_v<T>) {
      for (std::size_t i = 0; i < y.size() / sizeof(T); ++i) {
        const T label = load<T>(y, i);
        if (std::cmp_less(label, 0) || std::cmp_greater_equal(label, spec.classes.size()))
          return BadLabel{i / spec.y.n_elements(), std::to_string(label)};
      }
    }
    return std::nullopt;
  });
}

std::string expected_labels(const SetSpec& spec) {
  if (spec.classes.size() == 1) return "0, as there is 1 class";
  return fmt::format("0 to {}, as there are {} classes", spec.classes.size() - 1, spec.classes.size());
}

}  // namespace lockstep::data

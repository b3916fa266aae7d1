#include "data/format/values.hpp"

#include <fmt/format.h>

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

}  // namespace

std::uint64_t count_not_finite(core::DType dtype, std::span<const std::byte> values) noexcept {
  if (!core::is_floating(dtype)) return 0;
  return core::visit(dtype, [&]<class T>(std::type_identity<T>) {
    std::uint64_t n = 0;
    for (std::size_t i = 0; i < values.size() / sizeof(T); ++i) n += is_finite(load<T>(values, i)) ? 0 : 1;
    return n;
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
  return fmt::format("0 to {}, as there are {} classes", spec.classes.size() - 1, spec.classes.size());
}

}  // namespace lockstep::data

#include "data/augment/convert.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/error.hpp"

namespace lockstep::data {
namespace {

template <class To, class From>
To number_as(From value) {
  if constexpr (std::is_same_v<To, std::int64_t> && std::is_arithmetic_v<From>)
    return static_cast<To>(value);
  else
    return static_cast<To>(static_cast<float>(value));
}

/// `f` converts each From to a To.
template <class From, class To, class F>
void for_each_number(std::span<const std::byte> in, std::span<std::byte> out, F f) {
  const std::size_t n = in.size() / sizeof(From);
  core::require(out.size() == n * sizeof(To), "the output has the size of the converted numbers");
  for (std::size_t i = 0; i < n; ++i) {
    From value;
    std::memcpy(&value, in.data() + i * sizeof(From), sizeof(From));
    const To result = f(value);
    std::memcpy(out.data() + i * sizeof(To), &result, sizeof(To));
  }
}

template <class From, class To>
void convert_to(std::span<const std::byte> in, std::span<std::byte> out, const Normalization& normalization) {
  if (normalization.mean.empty())
    return for_each_number<From, To>(in, out, [](From value) { return number_as<To>(value); });
  for_each_number<From, To>(in, out, [&normalization, c = std::size_t{0}](From value) mutable {
    const float normal = (static_cast<float>(value) - normalization.mean[c]) / normalization.stddev[c];
    if (++c == normalization.mean.size()) c = 0;
    return number_as<To>(normal);
  });
}

}  // namespace

void convert(core::DType from, std::span<const std::byte> in, core::DType to, std::span<std::byte> out,
             const Normalization& normalization) {
  if (from == to && normalization.mean.empty()) {
    core::require(out.size() == in.size(), "the output has the size of the converted numbers");
    std::ranges::copy(in, out.begin());
    return;
  }
  core::visit(from, [&]<class From>(std::type_identity<From>) {
    switch (to) {
      case core::DType::float32: return convert_to<From, float>(in, out, normalization);
      case core::DType::bfloat16: return convert_to<From, core::bfloat16>(in, out, normalization);
      case core::DType::int64: return convert_to<From, std::int64_t>(in, out, normalization);
      default: core::require(false, "numbers are converted to float32, bfloat16 or int64");
    }
  });
}

}  // namespace lockstep::data

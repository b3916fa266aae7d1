#include "data/format/spec.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <numeric>

namespace lockstep::data {

std::uint64_t ArraySpec::n_elements() const noexcept {
  return std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>{});
}

std::uint64_t ArraySpec::bytes() const noexcept { return n_elements() * core::size_of(dtype); }

std::string describe(const ArraySpec& array) {
  return fmt::format("{} [{}]", core::name(array.dtype), fmt::join(array.shape, ", "));
}

core::DType label_dtype(std::size_t n_classes) noexcept {
  if (n_classes <= std::size_t{1} << 8) return core::DType::uint8;
  if (n_classes <= std::size_t{1} << 16) return core::DType::uint16;
  return n_classes <= std::size_t{1} << 32 ? core::DType::uint32 : core::DType::uint64;
}

}  // namespace lockstep::data

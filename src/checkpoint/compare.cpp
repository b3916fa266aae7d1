#include "checkpoint/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <vector>

#include "core/suggest.hpp"

namespace lockstep::checkpoint {
namespace {

/// The number of floats between two, with -0 and 0 as neighbours; NaNs count by their bits.
std::int64_t ulps_between(float a, float b) {
  const auto place = [](float value) {
    const auto bits = std::bit_cast<std::int32_t>(value);
    return bits < 0 ? std::int64_t{INT32_MIN} - bits - 1 : std::int64_t{bits};
  };
  return std::abs(place(a) - place(b));
}

/// The index of element `at`: "[3, 0, 2]".
std::string index_text(const std::vector<std::uint64_t>& shape, std::size_t at) {
  std::vector<std::string> index(shape.size());
  for (std::size_t d = shape.size(); d-- > 0; at /= shape[d]) index[d] = std::to_string(at % shape[d]);
  return fmt::format("[{}]", core::join(index));
}

/// Returns the difference in a tensor of both; empty if there is none.
std::string difference_in(const Box& box, const Checkpoint& first, const Checkpoint& second) {
  std::vector<float> a(box.n_elements()), b(box.n_elements());
  first.read(box, a);
  second.read(box, b);
  std::size_t n_differing = 0, at = 0;
  std::int64_t most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(a[i]) == std::bit_cast<std::uint32_t>(b[i])) continue;
    if (n_differing++ == 0) at = i;
    most = std::max(most, ulps_between(a[i], b[i]));
  }
  if (n_differing == 0) return {};
  return fmt::format("{} {}: {:.9g} and {:.9g}, {} ULP apart; {} of {} elements differ, by {} ULP at most", box.tensor,
                     index_text(box.shape, at), a[at], b[at], ulps_between(a[at], b[at]), n_differing, a.size(), most);
}

}  // namespace

Comparison compare(const Checkpoint& first, const Checkpoint& second) {
  Comparison comparison;
  const auto count = [&](const std::string& difference) {
    ++(difference.empty() ? comparison.n_equal : comparison.n_differing);
    if (comparison.first.empty()) comparison.first = difference;
  };
  std::map<std::string, Box> others;
  for (const Box& box : second.tensors()) others[box.tensor] = box;
  for (const Box& box : first.tensors()) {
    const auto other = others.find(box.tensor);
    if (other == others.end())
      count(fmt::format("{}: only in {}", box.tensor, first.path()));
    else if (other->second.shape != box.shape)
      count(fmt::format("{}: of different shapes", box.tensor));
    else
      count(difference_in(box, first, second));
    if (other != others.end()) others.erase(other);
  }
  for (const auto& [name, box] : others) count(fmt::format("{}: only in {}", name, second.path()));
  return comparison;
}

}  // namespace lockstep::checkpoint

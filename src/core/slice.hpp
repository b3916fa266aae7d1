// A contiguous part of a vector: where it begins and how many elements it has.
// Invariant: elements, never bytes; a pure value.
// Used by everything that cuts vectors: comm/, parallel/, optim/, nn/ and the programs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace lockstep::core {

/// Returns the least multiple of `multiple` that is at least `n`.
[[nodiscard]] constexpr std::size_t round_up(std::size_t n, std::size_t multiple) noexcept {
  return (n + multiple - 1) / multiple * multiple;
}

struct Slice {
  std::size_t offset = 0;
  std::size_t count = 0;

  [[nodiscard]] constexpr std::size_t end() const noexcept { return offset + count; }
  [[nodiscard]] constexpr bool empty() const noexcept { return count == 0; }
  /// The same part in a vector that begins at `origin` of this one.
  [[nodiscard]] constexpr Slice seen_from(std::size_t origin) const noexcept { return {offset - origin, count}; }
  template <class T>
  [[nodiscard]] constexpr std::span<T> of(std::span<T> whole) const noexcept {
    return whole.subspan(offset, count);
  }

  friend constexpr bool operator==(const Slice&, const Slice&) noexcept = default;
};

/// The common part of both; {} if there is none.
[[nodiscard]] constexpr Slice intersection(const Slice& a, const Slice& b) noexcept {
  const std::size_t begin = std::max(a.offset, b.offset);
  const std::size_t end = std::min(a.end(), b.end());
  return begin < end ? Slice{begin, end - begin} : Slice{};
}

/// Returns part `index` of `whole`, cut at multiples of `grain` from its begin into `n_parts` parts whose sizes differ
/// by at most one grain. The first are the longest, and the last may end within a grain.
[[nodiscard]] constexpr Slice partition(const Slice& whole, std::size_t n_parts, std::size_t index,
                                        std::size_t grain = 1) noexcept {
  const std::size_t n_grains = whole.count / grain + (whole.count % grain == 0 ? 0 : 1);
  const std::size_t shorter = n_grains / n_parts;
  const std::size_t n_longer = n_grains % n_parts;
  const auto cut = [&](std::size_t i) { return std::min((i * shorter + std::min(i, n_longer)) * grain, whole.count); };
  return {whole.offset + cut(index), cut(index + 1) - cut(index)};
}

/// The same for a vector of `n` elements.
[[nodiscard]] constexpr Slice partition(std::size_t n, std::size_t n_parts, std::size_t index,
                                        std::size_t grain = 1) noexcept {
  return partition(Slice{0, n}, n_parts, index, grain);
}

}  // namespace lockstep::core

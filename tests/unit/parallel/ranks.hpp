// Placements of ranks, slots and values for the tests of parallel/.
// Invariant: values are pure functions of their arguments; sums of small integers are exact.
// Used by tests/unit/parallel.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "parallel/synchronizer.hpp"

namespace lockstep::support {

/// The node of each rank.
using Nodes = std::vector<int>;

inline std::string describe(const Nodes& nodes) { return fmt::format("nodes {}", fmt::join(nodes, " ")); }

/// 1, 2, 3, 4, 5 and 8 ranks on one to three nodes, of equal and different size, in blocks and in turn.
inline const std::vector<Nodes>& placements() {
  static const std::vector<Nodes> all{
      {0},
      {0, 0},
      {0, 1},
      {0, 0, 0},
      {0, 0, 1},
      {0, 1, 2},
      {0, 0, 0, 0},
      {0, 0, 1, 1},
      {0, 1, 0, 1},
      {0, 0, 0, 1},
      {0, 0, 0, 0, 0},
      {0, 0, 1, 1, 2},
      {0, 1, 2, 1, 1},
      {0, 0, 0, 0, 0, 0, 0, 0},
      {0, 0, 0, 0, 1, 1, 1, 1},
      {0, 1, 2, 0, 1, 2, 0, 1},
  };
  return all;
}

/// Slots of these sizes at multiples of 16 elements, named "t0", "t1", ...; every third one does not decay.
inline std::vector<parallel::Slot> make_slots(const std::vector<std::size_t>& sizes) {
  std::vector<parallel::Slot> slots;
  std::size_t offset = 0;
  for (const std::size_t size : sizes) {
    slots.push_back({fmt::format("t{}", slots.size()), {offset, size}, slots.size() % 3 != 2});
    offset += (size + 15) / 16 * 16;
  }
  return slots;
}

/// Odd sizes, an empty one, and enough for several buckets (of `small_buckets`) and owners.
inline std::vector<parallel::Slot> odd_slots() { return make_slots({10, 5'003, 1, 0, 9'999, 257, 16, 3'333, 31}); }

inline constexpr std::size_t small_bucket_bytes = 16 * 1024;

/// A small integer, different for neighbours, ranks and steps.
inline float small_integer(std::size_t element, int rank, int step) {
  const std::uint64_t mixed = (element + 1) * 2'654'435'761U + static_cast<std::uint64_t>(rank) * 40'503U +
                              static_cast<std::uint64_t>(step) * 9'973U;
  return static_cast<float>(static_cast<int>(mixed % 15) - 7);
}

/// A value that uses all its bits.
inline float odd_value(std::size_t element, int rank, int step) {
  return small_integer(element, rank, step) / 7.0F + static_cast<float>(element % 1'013) * 1e-4F;
}

/// Calls `set` for every element of every slot; leaves gaps between slots unchanged.
template <class Value>
void fill(std::span<const parallel::Slot> slots, std::span<float> arena, Value value) {
  for (const parallel::Slot& slot : slots)
    for (std::size_t i = slot.slice.offset; i < slot.slice.end(); ++i) arena[i] = value(i);
}

/// Sets every parameter that a synchronizer keeps to `value` of its place in the arena; start() must follow.
template <class Value>
void set_parameters(parallel::Synchronizer& synchronizer, Value value) {
  synchronizer.visit(parallel::Access::kept, [&](const parallel::StoredPiece& piece) {
    if (piece.state != "parameter") return;
    for (std::size_t i = 0; i < piece.values.size(); ++i) piece.values[i] = value(piece.slice.offset + i);
  });
}

/// The largest difference, in units of the last place of the larger value, or of `floor` if that is larger.
inline double distance_in_ulp(std::span<const float> a, std::span<const float> b, float floor = 1e-6F) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double size = std::max({std::abs(a[i]), std::abs(b[i]), floor});
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - b[i]) / (size * 0x1p-23));
  }
  return largest;
}

}  // namespace lockstep::support

// The places of tensors in the arenas of parameters and gradients, by name.
// Invariant: ascending and disjoint; gaps between slots, and padding within them, are 0 in parameters and gradients.
// Used by all of parallel/; the trainer makes them from the slots of its executor.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/slice.hpp"

namespace lockstep::parallel {

/// Slots are numbered in the order in which backward completes their gradients.
struct Slot {
  std::string name;
  core::Slice slice{};
  bool decays = true;            ///< weight decay applies
  std::size_t row_elements = 0;  ///< for an embedding: only rows given to Synchronizer::touch() have gradients; else 0
  /// A piece cut at multiples of `block` elements from its begin is a slice of the logical tensor: `block_rows` of its
  /// `n_rows` rows each, along one of its dimensions.
  std::size_t block = 1;
  std::size_t block_rows = 1;
  std::size_t n_rows = std::numeric_limits<std::size_t>::max();
};

/// The part of a slot that lies in some slice of the arena.
struct SlotPart {
  std::size_t slot = 0;
  core::Slice slice{};
};

/// Flips the lowest bit, for drills: in a finite value this gives no NaN or infinity.
inline void flip_bit(float& value) noexcept { value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ 1U); }

/// The number of elements of an arena for `slots`.
[[nodiscard]] std::size_t arena_elements(std::span<const Slot> slots) noexcept;

/// Throws core::Error (system) unless `slots` are ascending and disjoint.
void require_ordered(std::span<const Slot> slots);

/// Returns the parts of slots in `slice`, ascending; empty slots have none.
[[nodiscard]] std::vector<SlotPart> parts_in(std::span<const Slot> slots, core::Slice slice);

/// Returns the rows of its tensor that `part` of `slot` holds; the part must be cut at multiples of blocks.
[[nodiscard]] core::Slice rows_of(const Slot& slot, const core::Slice& part) noexcept;

/// Returns the first slot that holds a NaN or infinity. Reads the whole arena: for messages, not for every step.
[[nodiscard]] std::optional<std::size_t> find_not_finite(std::span<const Slot> slots, std::span<const float> arena);

}  // namespace lockstep::parallel

// The arenas of parameters and gradients: a slot is the place of a tensor, a piece is a part of one slot. Everything
// that cuts an arena uses core::Slice for a part that may contain several tensors, and Piece for a part of one tensor.
// Invariant: slots are ascending and disjoint; gaps between them, and padding within them, are 0 in both arenas.
// Used by all of parallel/; the trainer makes slots from those of its executor.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/slice.hpp"

namespace lockstep::parallel {

/// Slices of ranks begin on a cache line. Norms are first taken over blocks of about this many elements (4 KiB).
inline constexpr std::size_t alignment = 16, block_elements = 1024;

/// Slots are numbered in the order of the arena. A slot is ready once its gradient and those of all earlier slots are.
struct Slot {
  std::string name;
  core::Slice slice{};
  bool decays = true;            ///< weight decay applies
  std::size_t row_elements = 0;  ///< for an embedding: only rows given to Synchronizer::touch() have gradients; else 0
  std::size_t block = 1;    ///< a piece cut at multiples of this from the slot's begin is a slice of the logical tensor
  bool has_padding = true;  ///< elements that no pass writes
  /// What passes need together, see Synchronizer::acquire(). None: the slot is always there whole.
  std::optional<std::size_t> unit{};
};

/// A part of one tensor.
struct Piece {
  std::size_t slot = 0;
  core::Slice slice{};  ///< of the arena

  friend bool operator==(const Piece&, const Piece&) noexcept = default;
};

/// Flips the lowest bit, for drills: in a finite value this gives no NaN or infinity.
inline void flip_bit(float& value) noexcept { value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ 1U); }

/// The number of elements of an arena for `slots`.
[[nodiscard]] std::size_t arena_elements(std::span<const Slot> slots) noexcept;

/// Throws core::Error (system) unless `slots` are ascending and disjoint.
void require_ordered(std::span<const Slot> slots);

/// Returns the pieces of slots in `slice`, ascending; empty slots have none.
[[nodiscard]] std::vector<Piece> pieces_in(std::span<const Slot> slots, const core::Slice& slice);

/// Returns the first slot that holds a NaN or infinity. Reads the whole arena: for messages, not for every step.
[[nodiscard]] std::optional<std::size_t> find_not_finite(std::span<const Slot> slots, std::span<const float> arena);

}  // namespace lockstep::parallel

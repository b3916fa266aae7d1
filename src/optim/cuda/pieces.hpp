// How an arena is cut for kernels: into ranges, whose elements share one set of numbers, and pieces of ranges. A block
// of threads processes one piece at a time.
// Invariant: the cut depends only on the ranges, so sums over pieces have the same order on any GPU.
// Used by the kernels of this folder and by code that copies the tables to a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "optim/optimizer.hpp"

namespace lockstep::optim::cuda {

/// Ranges begin and end at multiples of this; gaps in the arena are filled with zeros, which stay zeros.
inline constexpr std::size_t range_multiple = 16;
/// The greatest size of a piece; small enough that the last blocks of a GPU do not work long while others are done.
inline constexpr std::size_t piece_elements = 8192;

/// The greatest size of an arena: kernels count units of 8 elements in 32 bits, because registers are scarce.
inline constexpr std::size_t most_elements = std::size_t{8} << 32;

struct alignas(16) Piece {
  std::uint64_t offset = 0;
  std::uint32_t n = 0;
  std::uint32_t range = 0;  ///< its index
};

struct PieceRange {
  std::uint32_t first_piece = 0;
  std::uint32_t n_pieces = 0;
  bool decays = true;
};

struct Cut {
  std::vector<Piece> pieces{};
  std::vector<PieceRange> ranges{};  ///< one per segment
};

/// Cuts segments, which must be within most_elements and end at multiples of range_multiple.
[[nodiscard]] Cut cut(std::span<const Segment> segments);

}  // namespace lockstep::optim::cuda

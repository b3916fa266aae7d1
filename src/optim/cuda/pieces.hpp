// How an arena is cut for kernels: ranges, whose elements share one set of numbers, and pieces of them, of which a
// block of threads takes one at a time.
// Invariant: the cut depends on the ranges alone, so what is summed piece by piece has one order, whatever the GPU.
// Used by the kernels of this folder and by who puts the tables in a device's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "optim/optimizer.hpp"

namespace lockstep::optim::cuda {

/// What a range begins and ends at a multiple of; who lays out an arena fills gaps with zeros, which stay zeros.
inline constexpr std::size_t range_multiple = 16;
/// Of a piece, at most; small enough that the last blocks of a GPU do not work long while others are done.
inline constexpr std::size_t piece_elements = 8192;

/// Of an arena: kernels count units of 8 elements in 32 bits, as registers are what limits them.
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

/// Of segments within most_elements whose ends are multiples of range_multiple.
[[nodiscard]] Cut cut(std::span<const Segment> segments);

}  // namespace lockstep::optim::cuda

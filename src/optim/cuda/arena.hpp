// An arena in a device's memory: types of its arrays, how kernels cut it, sums of squares, hashes, and a cast.
// Invariant: arrays begin at multiples of 16 bytes, and pieces are within all of them. The cut depends only on the
// ranges, and determines the order of additions. So a sum has the same bits on any GPU.
// Used by the kernels of this folder and by code that enqueues a step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "core/dtype.hpp"
#include "optim/optimizer.hpp"
#include "runtime/device.hpp"

namespace lockstep::optim::cuda {

using runtime::DeviceSpan;
using runtime::Stream;

using Gradient =
    std::variant<DeviceSpan<const float>, DeviceSpan<const core::bfloat16>, DeviceSpan<const core::float16>>;

/// The rounded parameters for layers that do not read the parameters themselves.
using Copy = std::variant<std::monostate, DeviceSpan<core::bfloat16>, DeviceSpan<core::float16>>;

// Kernels see ranges, whose elements share one set of numbers, and pieces of ranges.

/// Ranges begin and end at multiples of this; gaps in the arena are filled with zeros, which stay zeros.
inline constexpr std::size_t range_multiple = 16;
/// The greatest size of a piece; small enough that the last blocks of a GPU do not work long while others are done.
inline constexpr std::size_t piece_elements = 8192;

/// The greatest size of an arena: kernels count octets of elements in 32 bits, because registers are scarce.
inline constexpr std::size_t most_elements = std::size_t{8} << 32;

/// What a block of threads processes at a time.
struct alignas(16) BlockPiece {
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
  std::vector<BlockPiece> pieces{};
  std::vector<PieceRange> ranges{};  ///< one per segment
};

/// Cuts segments, which must be within most_elements and end at multiples of range_multiple.
[[nodiscard]] Cut cut(std::span<const Segment> segments);

// Sums of squares, in double, are finite if and only if all elements are: double holds the square of every float32 and
// any sum of them.

/// Computes one number per piece; `pieces` may be a run of an arena's pieces.
void squared_norms(Stream& stream, const Gradient& values, DeviceSpan<const BlockPiece> pieces,
                   DeviceSpan<double> partials);

/// Adds up the numbers of all pieces: one sum per range.
void add_up(Stream& stream, DeviceSpan<const double> partials, DeviceSpan<const PieceRange> ranges,
            DeviceSpan<double> totals);

// Hashes of core/sum_hash.hpp, by place in the arena.

/// Computes one number per piece.
void hash_pieces(Stream& stream, DeviceSpan<const float> values, DeviceSpan<const BlockPiece> pieces,
                 DeviceSpan<std::uint64_t> partials);
/// As for squares.
void add_up(Stream& stream, DeviceSpan<const std::uint64_t> partials, DeviceSpan<const PieceRange> ranges,
            DeviceSpan<std::uint64_t> totals);

/// Rounds as an update does: once, to nearest, ties to even. Both have the same size, a multiple of range_multiple.
void cast(Stream& stream, DeviceSpan<const float> from, const Copy& to);

}  // namespace lockstep::optim::cuda

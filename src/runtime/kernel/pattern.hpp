// A device's memory written with a tile that repeats, and compared with it: test data that no host has to look at.
// Invariant: what is found is what a loop over elements finds, whatever the GPU: sums of integers, and their least.
// Used by reduce_all.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/device.hpp"

namespace lockstep::runtime::kernel {

/// Kernels move so many bytes at once, from one multiple of it to the next.
inline constexpr std::size_t bytes_of_pack = 16;

/// How many elements are not as they should be, and which is the first; all zero if there are none.
struct Difference {
  std::uint64_t n_wrong = 0;
  std::uint64_t index = 0;
  std::uint64_t expected = 0;  ///< its bytes, as stored
  std::uint64_t found = 0;
};

/// What a block of threads has found.
struct PartialDifference {
  std::uint64_t n_wrong = 0;
  std::uint64_t first = 0;  ///< byte; the largest number if there is none
};

/// A tile as these kernels read it: repeated until it fills whole packs, or as much of it as memory of `n_bytes` needs
/// wherever that begins.
[[nodiscard]] std::size_t packed_bytes(std::size_t tile_bytes, std::size_t n_bytes) noexcept;
/// For memory at `where`, whose first byte becomes as the tile's; it may lie between two multiples of a pack.
void pack(std::span<const std::byte> tile, const void* where, std::span<std::byte> packed);

/// `packed` is a tile for just this place.
void repeat(Stream& stream, DeviceSpan<const std::byte> packed, DeviceSpan<std::byte> to);
/// One element, which `pack` holds as often as it has room; `to` begins at a multiple of its size.
void repeat(Stream& stream, const std::array<std::byte, bytes_of_pack>& pack, DeviceSpan<std::byte> to);

/// Blocks that compare() takes for so many bytes.
[[nodiscard]] std::size_t n_partial_differences(std::size_t n_bytes) noexcept;
/// Of elements of 1, 2, 4 or 8 bytes, at a multiple of that.
struct Comparison {
  DeviceSpan<const std::byte> packed;  ///< for just this place
  DeviceSpan<const std::byte> found;
  std::size_t element_size = 1;
  DeviceSpan<PartialDifference> partials;  ///< as many as n_partial_differences()
};
void compare(Stream& stream, const Comparison& of);
/// What compare() has left: one.
void conclude(Stream& stream, const Comparison& of, DeviceSpan<Difference> result);

/// The lowest of the byte.
void flip_bit(Stream& stream, DeviceSpan<std::byte> of, std::size_t at);

}  // namespace lockstep::runtime::kernel

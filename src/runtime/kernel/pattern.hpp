// Fills a device's memory with a repeated tile, and compares memory with it: test data that the host need not read.
// Invariant: the result is that of a loop over elements, on any GPU: sums and minima of integers.
// Used by reduce_all.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/device.hpp"

namespace lockstep::runtime::kernel {

/// Kernels move this many bytes at once, from one multiple of it to the next.
inline constexpr std::size_t bytes_of_pack = 16;

/// How many elements differ from the expected ones, and the first of them; all zero if none do.
struct Difference {
  std::uint64_t n_wrong = 0;
  std::uint64_t index = 0;
  std::uint64_t expected = 0;  ///< its bytes, as stored
  std::uint64_t found = 0;
};

/// The result of one block of threads.
struct PartialDifference {
  std::uint64_t n_wrong = 0;
  std::uint64_t first = 0;  ///< byte; the largest number if no element differs
};

/// The size of a tile as these kernels read it: repeated until it fills whole packs, or as much of it as memory of
/// `n_bytes` needs at any address.
[[nodiscard]] std::size_t packed_bytes(std::size_t tile_bytes, std::size_t n_bytes) noexcept;
/// Packs the tile for memory at `where`, whose first byte is the tile's first; `where` may be between multiples of a
/// pack.
void pack(std::span<const std::byte> tile, const void* where, std::span<std::byte> packed);

/// `packed` is a tile for exactly this place.
void repeat(Stream& stream, DeviceSpan<const std::byte> packed, DeviceSpan<std::byte> to);
/// Repeats one element, of which `pack` is full; `to` begins at a multiple of its size.
void repeat(Stream& stream, const std::array<std::byte, bytes_of_pack>& pack, DeviceSpan<std::byte> to);

/// The number of blocks of compare() for this many bytes.
[[nodiscard]] std::size_t n_partial_differences(std::size_t n_bytes) noexcept;
/// Elements have 1, 2, 4 or 8 bytes and are aligned to their size.
struct Comparison {
  DeviceSpan<const std::byte> packed;  ///< for exactly this place
  DeviceSpan<const std::byte> found;
  std::size_t element_size = 1;
  DeviceSpan<PartialDifference> partials;  ///< as many as n_partial_differences()
};
void compare(Stream& stream, const Comparison& of);
/// Joins the results of compare() to one.
void conclude(Stream& stream, const Comparison& of, DeviceSpan<Difference> result);

/// Flips the lowest bit of the byte.
void flip_bit(Stream& stream, DeviceSpan<std::byte> of, std::size_t at);

}  // namespace lockstep::runtime::kernel

// Converts a row of interleaved pixels to planes by tables of 256 levels, with byte permutations of 512-bit vectors.
// Invariant: the same bits as one table access per value.
// Used by lookup.cpp if find_planar() returns a function; defined in planar_x86.cpp or planar_portable.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::data {

/// The bytes of a table of 256 elements: byte 0 of all of them, then byte 1, ... of each channel in turn.
using BytePlanes = std::vector<std::uint8_t>;

struct PlanarRow {
  const unsigned char* in = nullptr;  ///< n pixels of n_channels bytes
  std::size_t n = 0;
  std::size_t n_channels = 0;  ///< 1 to 4
  bool is_flipped = false;     ///< the last pixel first
};

/// Writes out[c * channel_stride + i] for n elements i of each channel c. `element_bytes`: 2 or 4, as in the tables.
using ConvertPlanar = void (*)(const PlanarRow& row, const std::uint8_t* planes, std::size_t element_bytes,
                               std::byte* out, std::size_t channel_stride);

/// nullptr if the processor lacks such permutations.
[[nodiscard]] ConvertPlanar find_planar() noexcept;

}  // namespace lockstep::data

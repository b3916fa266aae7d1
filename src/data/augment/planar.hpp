// Converts a row of interleaved pixels to planes by tables of 256 levels, with byte permutations of 512-bit vectors.
// Invariant: the same bits as one table access per value.
// Used by lookup.cpp if find_planar() returns a function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/instruction_sets.hpp"

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

/// For x86 with AVX-512 VBMI: compiled for it, so only find_planar() may name it.
void convert_planar_vbmi(const PlanarRow& row, const std::uint8_t* planes, std::size_t element_bytes, std::byte* out,
                         std::size_t channel_stride);

/// nullptr if the processor lacks such permutations.
[[nodiscard]] inline ConvertPlanar find_planar() noexcept {
#ifdef __x86_64__
  if (core::instruction_sets().avx512_vbmi) return convert_planar_vbmi;
#endif
  return nullptr;
}

}  // namespace lockstep::data

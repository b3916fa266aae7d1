// The loops of a resize, one set per instruction set, chosen at run time.
// Invariant: sums are of whole numbers, so every set gives the same bytes; nothing beyond a row is read or written.
// Used by data/image/image_resize.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/loop_sets.hpp"

namespace lockstep::data {

/// Weights are fixed-point numbers of 22 bits: a sum of 255 times 1 and its rounding stay below 2^31.
inline constexpr int tap_weight_bits = 22;

/// Inputs that follow one another.
struct TapRun {
  std::size_t first = 0;
  std::size_t n = 0;
};

/// For each of the `n_out` places along one side: which of the `n_in` inputs count, and how much.
struct TapTable {
  const TapRun* runs = nullptr;  ///< neither their begins nor their ends ever go back
  const std::int32_t* weights = nullptr;
  std::size_t stride = 0;     ///< of weights, per place; those beyond its taps are 0
  std::size_t most_taps = 0;  ///< of any place
  std::size_t n_in = 0;
  std::size_t n_out = 0;
};

struct ResizeLoops {
  /// One row of gray pixels, or of colours of three bytes, to `across.n_out` pixels.
  void (*gray_row)(const std::uint8_t* in, const TapTable& across, std::uint8_t* out);
  void (*colour_row)(const std::uint8_t* in, const TapTable& across, std::uint8_t* out);
  /// One row from the `n` that begin at `rows`.
  void (*column_run)(const std::uint8_t* rows, std::size_t row_bytes, std::size_t n, const std::int32_t* weights,
                     std::uint8_t* out);

  template <core::LoopSet set>
  [[nodiscard]] static const ResizeLoops& version() noexcept;
};

}  // namespace lockstep::data

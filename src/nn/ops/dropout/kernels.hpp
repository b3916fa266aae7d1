// Dropout, forward or backward: both compute the random numbers, so no mask is stored.
// Invariant: the mask depends only on (seed, epoch, node, sample, logical place of the element), and equals nn/host's.
// Used by device.cpp.
#pragma once

#include "core/rng.hpp"
#include "core/step_numbers.hpp"
#include "nn/cuda/kernels/math.hpp"
#include "runtime/device.hpp"

namespace lockstep::nn::cuda {

/// Samples of n_positions rows of n_channels, a multiple of 8. Element e of a sample is (channel, position) in this
/// order, or else (position, feature).
template <class T>
struct DropElements {
  static constexpr int max_threads = 256;
  std::size_t n_samples;
  std::size_t n_positions;
  std::size_t n_channels;
  const T* x;
  T* out;  ///< may be x
  const std::uint64_t* ids;
  const core::StepNumbers* numbers;  ///< for their epoch
  std::uint64_t seed;
  std::uint32_t node;
  std::uint32_t threshold;       ///< words below it drop their element
  float factor;                  ///< of the kept ones
  std::size_t row_features = 0;  ///< not 0: positions are rows of as many features

  [[nodiscard]] std::size_t n() const { return n_samples * n_positions * n_channels / pack_channels; }
  [[nodiscard]] Grid grid() const {
    Grid grid = runtime::kernel::grid_of(n(), max_threads);
    grid.scratch_bytes = sizeof(std::uint32_t) * 4;
    return grid;
  }
  void touches(const auto& tell) const {
    tell("drop_elements", {region(x, n() * pack_channels), region(ids, n_samples), region(numbers, 1)},
         {region(out, n() * pack_channels)});
  }

  template <class Team>
  LOCKSTEP_HOST_DEVICE void operator()(Team& team) const {
    std::uint32_t* const key = team.template scratch<std::uint32_t>(4).data();
    team.each([&](int thread) {
      if (thread != 0) return;
      constexpr std::uint32_t dropout = 0x64726f70;
      const auto block = core::philox({low(seed), high(seed)}, {low(numbers->epoch), high(numbers->epoch), dropout, 0});
      key[0] = block[0];
      key[1] = block[1];
    });
    team.each([&](int thread) {
      const std::size_t n_packs = n_channels / pack_channels, n_all = n_samples * n_positions * n_packs;
      const std::size_t stride = static_cast<std::size_t>(team.n_blocks()) * static_cast<std::size_t>(team.n_threads());
      std::size_t i = static_cast<std::size_t>(team.block()) * static_cast<std::size_t>(team.n_threads());
      LOCKSTEP_NO_UNROLL
      for (i += static_cast<std::size_t>(thread); i < n_all; i += stride) {
        const std::size_t row = i / n_packs, first = i % n_packs * pack_channels;
        const Sample sample{{key[0], key[1]}, node, ids[row / n_positions]};
        const std::size_t stride = row_features == 0 ? n_positions : 1, position = row % n_positions;
        const std::size_t element = first * stride + position * (row_features == 0 ? 1 : row_features);
        const unsigned kept =
            stride == 1 && element % 4 == 0 ? kept_together(sample, element) : kept_apart(sample, element, stride);
        const auto values = load_channels(x, i);
        store_each(out, i, [&](int k) { return (kept >> k & 1) != 0 ? values[k] * factor : 0; });
      }
    });
  }

 private:
  LOCKSTEP_HOST_DEVICE static std::uint32_t low(std::uint64_t value) { return static_cast<std::uint32_t>(value); }
  LOCKSTEP_HOST_DEVICE static std::uint32_t high(std::uint64_t value) {
    return static_cast<std::uint32_t>(value >> 32);
  }

  struct Sample {
    std::array<std::uint32_t, 2> key;
    std::uint32_t node;
    std::uint64_t id;

    LOCKSTEP_HOST_DEVICE std::array<std::uint32_t, 4> words(std::size_t counter) const {
      return core::philox(key, {static_cast<std::uint32_t>(counter), node, low(id), high(id)});
    }
  };

  /// A bit for each of 8 consecutive elements from a multiple of 4 on.
  LOCKSTEP_HOST_DEVICE unsigned kept_together(const Sample& sample, std::size_t first) const {
    unsigned kept = 0;
    for (unsigned half = 0; half < 2; ++half) {
      const auto words = sample.words(first / 4 + half);
      for (unsigned k = 0; k < 4; ++k) kept |= words[k] >= threshold ? 1U << (4 * half + k) : 0;
    }
    return kept;
  }
  /// A bit for each of 8 elements that are `stride` apart.
  LOCKSTEP_HOST_DEVICE unsigned kept_apart(const Sample& sample, std::size_t first, std::size_t stride) const {
    unsigned kept = 0;
    LOCKSTEP_NO_UNROLL
    for (unsigned k = 0; k < pack_channels; ++k) {
      const std::size_t element = first + k * stride;
      const auto words = sample.words(element / 4);
      const std::uint32_t even = (element & 2) == 0 ? words[0] : words[2];
      const std::uint32_t odd = (element & 2) == 0 ? words[1] : words[3];
      kept |= ((element & 1) == 0 ? even : odd) >= threshold ? 1U << k : 0;
    }
    return kept;
  }
};

}  // namespace lockstep::nn::cuda

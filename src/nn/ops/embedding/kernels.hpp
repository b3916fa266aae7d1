// Reads rows of a table by ids, and computes the table's gradient from sorted ids.
// Invariant: each row has one owner, which adds up its samples in their order, as nn/host does. An id out of range
// reads and writes nothing.
// Used by device.cpp.
#pragma once

#include "nn/cuda/kernels/math.hpp"
#include "runtime/device.hpp"

namespace lockstep::nn::cuda {

/// Copies the rows of samples, or of each id of sequences; rows have `width` elements, a multiple of 8. The host rounds
/// them while it copies; here the table is already rounded, to the same bits.
template <class T>
struct GatherRows {
  std::size_t n_samples;
  std::size_t width;
  std::size_t n_rows;
  const T* table;
  const std::int64_t* ids;  ///< rows of n_columns; column `column` is used
  std::size_t n_columns;
  std::size_t column;
  T* out;
  std::uint32_t* has_bad_id;  ///< set to 1 if an id is out of range; its result is 0

  [[nodiscard]] std::size_t n() const { return n_samples * width / pack_channels; }
  void touches(const auto& tell) const {
    tell("gather_rows", {region(table, n_rows * width), region(ids, n_samples * n_columns)},
         {region(out, n_samples * width), region(has_bad_id, 1)});
  }
  LOCKSTEP_HOST_DEVICE void operator()(std::size_t i) const {
    const std::size_t n_packs = width / pack_channels, sample = i / n_packs;
    const auto row = static_cast<std::uint64_t>(ids[sample * n_columns + column]);
    Channels<T> result;
    if (row < n_rows)
      result = load_channels(table, row * n_packs + i % n_packs);
    else
      *has_bad_id = 1;
    store_channels(out, i, result);
  }
};

/// Adds to the table's gradient, row by row; does not touch rows without samples.
template <class T>
struct AddSegments {
  std::size_t n_samples;
  std::size_t width;  ///< a multiple of 8
  std::size_t n_rows;
  const std::uint64_t* sorted_ids;  ///< ascending
  const std::uint32_t* samples;     ///< that have these ids; ascending among equal ids
  const T* gradient;
  float* table;

  [[nodiscard]] std::size_t n() const { return n_samples * width / pack_channels; }
  void touches(const auto& tell) const {
    tell("add_segments",
         {region(sorted_ids, n_samples), region(samples, n_samples), region(gradient, n_samples * width),
          region(table, n_rows * width)},
         {region(table, n_rows * width)});
  }
  LOCKSTEP_HOST_DEVICE void operator()(std::size_t i) const {
    const std::size_t n_packs = width / pack_channels, first = i / n_packs, pack = i % n_packs;
    const std::uint64_t id = sorted_ids[first];
    if (id >= n_rows || (first > 0 && sorted_ids[first - 1] == id)) return;
    const auto before = load_channels(table, id * n_packs + pack);
    Channels<float> sum;
    for (int k = 0; k < pack_channels; ++k) sum.set(k, before[k]);
    LOCKSTEP_NO_UNROLL
    for (std::size_t at = first; at < n_samples && sorted_ids[at] == id; ++at) {
      const auto values = load_channels(gradient, samples[at] * n_packs + pack);
      for (int k = 0; k < pack_channels; ++k) sum.set(k, sum[k] + values[k]);
    }
    store_channels(table, id * n_packs + pack, sum);
  }
};

}  // namespace lockstep::nn::cuda

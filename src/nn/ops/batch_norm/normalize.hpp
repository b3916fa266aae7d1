// Batch normalization's second half: normalize, add a residual, ReLU, and a mask of what ReLU let pass.
// Invariant: computed in float32 and rounded once; NaN stays NaN.
// Used by device.cpp.
#pragma once

#include "nn/cuda/kernels/rows.hpp"
#include "runtime/device.hpp"

namespace lockstep::nn::cuda {

/// In evaluation all rows are one group, with running statistics.
template <class T>
struct Normalize {
  static constexpr int max_threads = GroupedRows::n_threads;
  static constexpr unsigned min_blocks = GroupedRows::spread_blocks;
  static constexpr int n_at_once = sizeof(T) == 2 ? 4 : 1;
  GroupedRows rows;  ///< spread()
  const T* x;
  const T* residual;     ///< added, unless null
  const float* mean;     ///< of groups and channels
  const float* inverse;  ///< of the deviation, by group and channel
  const float* weight;
  const float* bias;
  bool has_relu;
  T* out;              ///< may be x or the residual
  std::uint8_t* mask;  ///< with ReLU, unless null: a bit for each element, 1 where it passes; a byte for each pack

  [[nodiscard]] Grid grid() const { return rows.grid(0); }
  void touches(const auto& tell) const {
    const std::size_t channels = rows.n_channels(), n = rows.n_elements(), of_groups = rows.n_groups() * channels;
    tell("normalize",
         {region(x, n), region(residual, residual == nullptr ? 0 : n), region(mean, of_groups),
          region(inverse, of_groups), region(weight, channels), region(bias, channels)},
         {region(out, n), region(mask, mask == nullptr ? 0 : n / pack_channels)});
  }

  template <class Team>
  LOCKSTEP_HOST_DEVICE void operator()(Team& team) const {
    // The opposite order to that of statistics: the rows that these read last may still be in a cache.
    const GroupedRows::Part part = rows.part(team.n_blocks() - 1 - team.block());
    struct Loaded {
      Channels<T> x, residual;
    };
    team.each([&](int thread) {
      rows.with_column(part, thread, [&](std::size_t pack, int lane) {
        const std::size_t of_group = part.group * rows.n_packs() + pack;
        const auto center = load_channels(mean, of_group), shift = load_channels(bias, pack);
        auto factor = load_channels(inverse, of_group);
        const auto scale = load_channels(weight, pack);
        for (int k = 0; k < pack_channels; ++k) factor.set(k, factor[k] * scale[k]);
        rows.for_rows<n_at_once>(
            part, pack, lane,
            [&](std::size_t at) {
              return Loaded{load_channels(x, at), load_channels_or_0(residual, at)};
            },
            [&](std::size_t at, const Loaded& loaded) {
              Channels<T> y;
              unsigned passing = 0;
              for (int k = 0; k < pack_channels; ++k) {
                float value = fused(loaded.x[k] - center[k], factor[k], shift[k]);
                if (residual != nullptr) value += loaded.residual[k];
                passing |= value <= 0 ? 0U : 1U << k;
                y.set(k, has_relu && value <= 0 ? 0 : value);
              }
              store_channels(out, at, y);
              if (mask != nullptr) mask[at] = static_cast<std::uint8_t>(passing);
            });
      });
    });
  }
};

}  // namespace lockstep::nn::cuda

// Sums over rows, channel by channel: the gradient of a bias.
// Invariant: one fixed order, in double from block to block.
// Used by nn/cuda.
#pragma once

#include "nn/cuda/kernels/rows.hpp"
#include "runtime/device.hpp"

namespace lockstep::nn::cuda {

/// Sums the rows of each part; all rows are one group.
template <class T>
struct PartialSums {
  static constexpr int max_threads = GroupedRows::n_threads;
  static constexpr unsigned min_blocks = GroupedRows::min_blocks;
  static constexpr std::size_t n_scratch = max_threads * pack_channels;
  GroupedRows rows;
  const T* x;
  double* partials;  ///< rows.n_partials()

  [[nodiscard]] Grid grid() const { return rows.grid(n_scratch * sizeof(float)); }
  void touches(const auto& tell) const {
    tell("partial_sums", {region(x, rows.n_elements())}, {region(partials, rows.n_partials())});
  }

  template <class Team>
  LOCKSTEP_HOST_DEVICE void operator()(Team& team) const {
    const GroupedRows::Part part = rows.part(team.block());
    float* const sums = team.template scratch<float>(n_scratch).data();
    team.each([&](int thread) {
      rows.with_column(part, thread, [&](std::size_t pack, int lane) {
        Pack<float, pack_channels> sum{};
        rows.for_rows<4>(
            part, pack, lane, [&](std::size_t at) { return load_channels(x, at); },
            [&](std::size_t, const Channels<T>& values) {
              for (int k = 0; k < pack_channels; ++k) sum[k] += values[k];
            });
        runtime::kernel::store(sums, static_cast<std::size_t>(thread), sum);
      });
    });
    team.each([&](int thread) {
      rows.with_channel(part, thread, [&](std::size_t place, std::size_t channel) {
        double sum = 0;
        for (int lane = 0; lane < rows.n_lanes(); ++lane)
          sum += static_cast<double>(sums[static_cast<std::size_t>(lane) * rows.place_stride() + place]);
        partials[rows.partial(part.group, part.index, channel)] = sum;
      });
    });
  }
};

struct ColumnSums {
  static constexpr int max_threads = PartJoin::n_threads;
  GroupedRows rows;
  const double* partials;
  bool adds;  ///< to the present values
  float* out;

  [[nodiscard]] Grid grid() const { return PartJoin::grid<double>(rows); }
  void touches(const auto& tell) const {
    const std::size_t n = rows.n_channels();
    tell("column_sums", {region(partials, rows.n_partials()), region(out, adds ? n : 0)}, {region(out, n)});
  }

  template <class Team>
  LOCKSTEP_HOST_DEVICE void operator()(Team& team) const {
    PartJoin::run<double>(
        team, rows,
        [&](int lane, std::size_t group, std::size_t channel) {
          double all = 0;
          for (auto part = static_cast<std::size_t>(lane); part < rows.n_parts(); part += PartJoin::n_lanes)
            all += partials[rows.partial(group, part, channel)];
          return all;
        },
        [](const double* of_lanes) {
          double all = 0;
          for (int lane = 0; lane < PartJoin::n_lanes; ++lane) all += of_lanes[lane * pack_channels];
          return all;
        },
        [&](double all, std::size_t, std::size_t channel) {
          out[channel] = (adds ? out[channel] : 0) + static_cast<float>(all);
        });
  }
};

[[nodiscard]] inline std::size_t column_sums_workspace_bytes(const GroupedRows& rows) {
  return rows.n_partials() * sizeof(double);
}

}  // namespace lockstep::nn::cuda

// Means and variances by group and channel, and the update of running ones: batch normalization's first half.
// Invariant: the same bits for any order of threads. Each part takes deviations from its first value, and sums are
// joined in double, so a variance is accurate even if the mean is far from 0. If the first value is an outlier, it is
// part of the variance, so its rounding errors are relatively small.
// Used by device.cpp.
#pragma once

#include "core/step_numbers.hpp"
#include "nn/cuda/kernels/rows.hpp"
#include "runtime/device.hpp"

namespace lockstep::nn::cuda {

/// The moments of n values; m2 is the sum of squared deviations from their mean.
struct Moments {
  double n;
  double mean;
  double m2;
};

/// Joins of(0) to of(count - 1), in order.
template <class Of>
LOCKSTEP_HOST_DEVICE Moments join_moments(int count, const Of& of) {
  double n = 0, sum = 0, m2 = 0;
  const double origin = of(0).mean;
  LOCKSTEP_NO_UNROLL
  for (int i = 0; i < count; ++i) {
    const Moments one = of(i);
    n += one.n;
    sum += one.n * (one.mean - origin);
  }
  if (n == 0) return {0, 0, 0};
  const double mean = origin + sum / n;
  LOCKSTEP_NO_UNROLL
  for (int i = 0; i < count; ++i) {
    const Moments one = of(i);
    m2 += one.m2 + one.n * (one.mean - mean) * (one.mean - mean);
  }
  return {n, mean, m2};
}

/// Computes the moments of each part of each group.
template <class T>
struct PartialMoments {
  static constexpr int max_threads = GroupedRows::n_threads;
  static constexpr unsigned min_blocks = GroupedRows::min_blocks;
  static constexpr std::size_t n_scratch = max_threads * pack_channels;
  static constexpr int n_at_once = sizeof(T) == 2 ? 4 : 2;
  GroupedRows rows;
  const T* x;
  Moments* partials;  ///< rows.n_partials()

  [[nodiscard]] Grid grid() const { return rows.grid(2 * n_scratch * sizeof(float)); }
  void touches(const auto& tell) const {
    tell("partial_moments", {region(x, rows.n_elements())}, {region(partials, rows.n_partials())});
  }

  template <class Team>
  LOCKSTEP_HOST_DEVICE void operator()(Team& team) const {
    const GroupedRows::Part part = rows.part(team.block());
    float* const sums = team.template scratch<float>(n_scratch).data();
    float* const squares = team.template scratch<float>(n_scratch).data();
    const bool is_empty = part.begin == part.end;
    team.each([&](int thread) {
      rows.with_column(part, thread, [&](std::size_t pack, int lane) {
        const auto origin = is_empty ? Channels<T>{} : load_channels(x, part.begin * rows.n_packs() + pack);
        Pack<float, pack_channels> sum{}, square{};
        rows.for_rows<n_at_once>(
            part, pack, lane, [&](std::size_t at) { return load_channels(x, at); },
            [&](std::size_t, const Channels<T>& values) {
              for (int k = 0; k < pack_channels; ++k) {
                const float deviation = values[k] - origin[k];
                sum[k] += deviation;
                square[k] = fused(deviation, deviation, square[k]);
              }
            });
        const auto at = static_cast<std::size_t>(thread);
        runtime::kernel::store(sums, at, sum);
        runtime::kernel::store(squares, at, square);
      });
    });
    team.each([&](int thread) {
      rows.with_channel(part, thread, [&](std::size_t place, std::size_t channel) {
        Moments& moments = partials[rows.partial(part.group, part.index, channel)];
        if (is_empty) {
          moments = {0, 0, 0};
          return;
        }
        double sum = 0, square = 0;
        for (int lane = 0; lane < rows.n_lanes(); ++lane) {
          const std::size_t at = static_cast<std::size_t>(lane) * rows.place_stride() + place;
          sum += static_cast<double>(sums[at]);
          square += static_cast<double>(squares[at]);
        }
        const auto n = static_cast<double>(part.end - part.begin);
        const double m2 = square - sum * sum / n;
        moments = {n, static_cast<double>(to_float(x[part.begin * rows.n_channels() + channel])) + sum / n,
                   m2 > 0 || m2 != m2 ? m2 : 0};
      });
    });
  }
};

/// Moves running statistics towards the mean over groups, weighted by numbers of values, as nn/host does.
struct MoveStatistics {
  std::size_t n_groups;
  std::size_t n_channels;
  const Moments* moments;
  double momentum;
  const core::StepNumbers* numbers;
  float* running_mean;
  float* running_variance;

  [[nodiscard]] std::size_t n() const { return n_channels; }
  void touches(const auto& tell) const {
    tell("move_statistics",
         {region(moments, n_groups * n_channels), region(numbers, 1), region(running_mean, n_channels),
          region(running_variance, n_channels)},
         {region(running_mean, n_channels), region(running_variance, n_channels)});
  }
  LOCKSTEP_HOST_DEVICE void operator()(std::size_t channel) const {
    if (!(numbers->share_of_step > 0)) return;
    const double kept = numbers->begins_step ? 1 - momentum : 1, taken = momentum * numbers->share_of_step;
    double n = 0, mean = 0, variance = 0;
    LOCKSTEP_NO_UNROLL
    for (std::size_t group = 0; group < n_groups; ++group) {
      const Moments& one = moments[group * n_channels + channel];
      n += one.n;
      mean += one.n * one.mean;
      variance += one.n * (one.m2 / (one.n - 1));
    }
    running_mean[channel] = static_cast<float>(kept * static_cast<double>(running_mean[channel]) + taken * (mean / n));
    running_variance[channel] =
        static_cast<float>(kept * static_cast<double>(running_variance[channel]) + taken * (variance / n));
  }
};

/// Joins the moments of parts to those of whole groups: arrays of n_groups times n_channels.
struct GroupMoments {
  static constexpr int max_threads = PartJoin::n_threads;
  GroupedRows rows;
  const Moments* partials;
  double eps;
  Moments* moments;
  float* mean;
  float* inverse;       ///< 1 / sqrt(variance + eps)
  MoveStatistics move;  ///< by the moments of one group; or without channels

  [[nodiscard]] Grid grid() const { return PartJoin::grid<Moments>(rows); }
  void touches(const auto& tell) const {
    const std::size_t n = rows.n_groups() * rows.n_channels(), n_moved = move.n_channels;
    tell("group_moments",
         {region(partials, rows.n_partials()), region(move.numbers, n_moved > 0 ? 1 : 0),
          region(move.running_mean, n_moved), region(move.running_variance, n_moved)},
         {region(moments, n), region(mean, n), region(inverse, n), region(move.running_mean, n_moved),
          region(move.running_variance, n_moved)});
  }

  template <class Team>
  LOCKSTEP_HOST_DEVICE void operator()(Team& team) const {
    const auto n_parts = static_cast<int>(rows.n_parts());
    PartJoin::run<Moments>(
        team, rows,
        [&](int lane, std::size_t group, std::size_t channel) {
          const int n = n_parts > lane ? (n_parts - lane - 1) / PartJoin::n_lanes + 1 : 0;
          if (n == 0) return Moments{0, 0, 0};
          return join_moments(n, [&](int i) {
            return partials[rows.partial(group, static_cast<std::size_t>(lane + i * PartJoin::n_lanes), channel)];
          });
        },
        [](const Moments* of_lanes) {
          return join_moments(PartJoin::n_lanes, [&](int lane) { return of_lanes[lane * pack_channels]; });
        },
        [&](const Moments& all, std::size_t group, std::size_t channel) {
          const std::size_t at = group * rows.n_channels() + channel;
          moments[at] = all;
          mean[at] = static_cast<float>(all.mean);
          inverse[at] = static_cast<float>(1 / __builtin_sqrt(all.m2 / all.n + eps));
          if (move.n_channels > 0) move(channel);
        });
  }
};

/// For evaluation, which uses running statistics for all samples.
struct InvertDeviations {
  std::size_t n_channels;
  const float* running_variance;
  double eps;
  float* inverse;

  [[nodiscard]] std::size_t n() const { return n_channels; }
  void touches(const auto& tell) const {
    tell("invert_deviations", {region(running_variance, n_channels)}, {region(inverse, n_channels)});
  }
  LOCKSTEP_HOST_DEVICE void operator()(std::size_t channel) const {
    inverse[channel] = static_cast<float>(1 / __builtin_sqrt(static_cast<double>(running_variance[channel]) + eps));
  }
};

}  // namespace lockstep::nn::cuda

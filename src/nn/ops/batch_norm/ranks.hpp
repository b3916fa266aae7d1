// Batch normalization over the samples of several ranks: the numbers that ranks sum, and what they compute from sums.
// Invariant: results have the same bits on all ranks because the sums do; a rank without samples has moments and sums
// of 0.
// Used by device_ranks.cpp, for one group.
#pragma once

#include "nn/ops/batch_norm/backward.hpp"
#include "nn/ops/batch_norm/statistics.hpp"

namespace lockstep::nn::cuda {

/// The number of elements that ranks sum for their common moments: for each channel the sum of values, then of their
/// squares; then the number of values of each channel.
[[nodiscard]] constexpr std::size_t shared_elements(std::size_t n_channels) { return 2 * n_channels + 1; }

/// Squares are not centred, so that ranks sum only once. This is accurate enough: values have at most float32's
/// precision, and sums are double.
struct ShareMoments {
  std::size_t n_channels;
  const Moments* moments;
  double* shared;

  [[nodiscard]] std::size_t n() const { return n_channels; }
  void touches(const auto& tell) const {
    tell("share_moments", {region(moments, n_channels)}, {region(shared, shared_elements(n_channels))});
  }
  LOCKSTEP_HOST_DEVICE void operator()(std::size_t channel) const {
    const Moments& own = moments[channel];
    shared[channel] = own.n * own.mean;
    shared[n_channels + channel] = own.m2 + own.n * own.mean * own.mean;
    if (channel == 0) shared[2 * n_channels] = own.n;
  }
};

struct JoinMoments {
  std::size_t n_channels;
  const double* shared;  ///< over all ranks
  double eps;
  Moments* moments;
  float* mean;
  float* inverse;

  [[nodiscard]] std::size_t n() const { return n_channels; }
  void touches(const auto& tell) const {
    tell("join_moments", {region(shared, shared_elements(n_channels))},
         {region(moments, n_channels), region(mean, n_channels), region(inverse, n_channels)});
  }
  LOCKSTEP_HOST_DEVICE void operator()(std::size_t channel) const {
    const double n_values = shared[2 * n_channels], value = shared[channel] / n_values;
    const double squares = shared[n_channels + channel] - n_values * value * value;
    const Moments all{n_values, value, squares < 0 ? 0 : squares};
    moments[channel] = all;
    mean[channel] = static_cast<float>(all.mean);
    inverse[channel] = static_cast<float>(1 / __builtin_sqrt(all.m2 / n_values + eps));
  }
};

/// As GroupGradients, but from sums over all ranks.
struct JoinGradients {
  std::size_t n_channels;
  const GradientSums* sums;
  const Moments* moments;  ///< of all ranks
  const float* inverse;
  float* offset;
  float* slope;

  [[nodiscard]] std::size_t n() const { return n_channels; }
  void touches(const auto& tell) const {
    tell("join_gradients", {region(sums, n_channels), region(moments, n_channels), region(inverse, n_channels)},
         {region(offset, n_channels), region(slope, n_channels)});
  }
  LOCKSTEP_HOST_DEVICE void operator()(std::size_t channel) const {
    const auto factor = static_cast<double>(inverse[channel]);
    offset[channel] = static_cast<float>(sums[channel].gradient / moments[channel].n);
    slope[channel] = static_cast<float>(sums[channel].product / moments[channel].n * factor * factor);
  }
};

}  // namespace lockstep::nn::cuda

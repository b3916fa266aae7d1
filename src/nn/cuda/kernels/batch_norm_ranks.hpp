// Batch normalization over the samples of several ranks: what these sum up, and what follows from the sums.
// Invariant: what follows has the same bits on all ranks, as sums over ranks have; a rank without samples has moments
// and sums of 0.
// Used by nn/cuda/rank_groups, for one group.
#pragma once

#include "nn/cuda/kernels/batch_norm_backward.hpp"
#include "nn/cuda/kernels/batch_norm_statistics.hpp"

namespace lockstep::nn::cuda {

/// Sums of values by channel, and the number of values of each behind them.
struct WeighMeans {
  std::size_t n_channels;
  const Moments* moments;
  double* sums;  ///< n_channels + 1

  [[nodiscard]] std::size_t n() const { return n_channels; }
  LOCKSTEP_HOST_DEVICE void operator()(std::size_t channel) const {
    const Moments& own = moments[channel];
    sums[channel] = own.n * own.mean;
    if (channel == 0) sums[n_channels] = own.n;
  }
};

/// Squared deviations from the mean over all ranks.
struct WeighDeviations {
  std::size_t n_channels;
  const Moments* moments;
  const double* sums;  ///< over all ranks
  double* squares;     ///< n_channels

  [[nodiscard]] std::size_t n() const { return n_channels; }
  LOCKSTEP_HOST_DEVICE void operator()(std::size_t channel) const {
    const Moments& own = moments[channel];
    const double distance = own.mean - sums[channel] / sums[n_channels];
    squares[channel] = own.n > 0 ? own.m2 + own.n * distance * distance : 0;
  }
};

struct JoinMoments {
  std::size_t n_channels;
  const double* sums;  ///< over all ranks, as are squares
  const double* squares;
  double eps;
  Moments* moments;
  float* mean;
  float* inverse;

  [[nodiscard]] std::size_t n() const { return n_channels; }
  LOCKSTEP_HOST_DEVICE void operator()(std::size_t channel) const {
    const double n_values = sums[n_channels];
    const Moments all{n_values, sums[channel] / n_values, squares[channel]};
    moments[channel] = all;
    mean[channel] = static_cast<float>(all.mean);
    inverse[channel] = static_cast<float>(1 / __builtin_sqrt(all.m2 / n_values + eps));
  }
};

/// As GroupGradients, from sums over all ranks.
struct JoinGradients {
  std::size_t n_channels;
  const GradientSums* sums;
  const Moments* moments;  ///< of all ranks
  const float* inverse;
  float* offset;
  float* slope;

  [[nodiscard]] std::size_t n() const { return n_channels; }
  LOCKSTEP_HOST_DEVICE void operator()(std::size_t channel) const {
    const auto factor = static_cast<double>(inverse[channel]);
    offset[channel] = static_cast<float>(sums[channel].gradient / moments[channel].n);
    slope[channel] = static_cast<float>(sums[channel].product / moments[channel].n * factor * factor);
  }
};

void enqueue(runtime::Stream& stream, const WeighMeans& body);
void enqueue(runtime::Stream& stream, const WeighDeviations& body);
void enqueue(runtime::Stream& stream, const JoinMoments& body);
void enqueue(runtime::Stream& stream, const JoinGradients& body);

}  // namespace lockstep::nn::cuda

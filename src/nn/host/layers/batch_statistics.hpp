// Statistics of batch normalization: how running ones move, and how several ranks compute those of all their samples.
// Invariant: ranks of a group sum arrays of the same lengths in the same order, with any number of samples, and their
// running statistics stay the same.
// Used by layers/batch_norm and layers/sync_batch_norm, and by the executor for ranks without samples.
#pragma once

#include <span>
#include <vector>

#include "nn/host/kernel.hpp"

namespace lockstep::nn::host {

/// How far a call moves the running statistics of a layer.
class RunningMove {
 public:
  RunningMove(const BatchNorm& layer, const PassContext& pass)
      : kept_{pass.numbers.begins_step ? 1 - layer.momentum : 1}, taken_{layer.momentum * pass.numbers.share_of_step} {}

  void operator()(float& running, double value) const {
    running = static_cast<float>(kept_ * static_cast<double>(running) + taken_ * value);
  }

 private:
  double kept_, taken_;
};

/// Collective over the group: from sums over this rank's values, and their number behind them, to means over those of
/// all ranks and the number of these. Throws core::Error (usage) if it is 1.
void share_means(const Node& node, const PassContext& pass, std::span<double> sums_and_n);
/// Likewise for squared deviations from these means, which become variances.
void share_variances(const PassContext& pass, double n, std::span<double> squares);

/// Of all the group's `n` values.
void move_towards(const RunningMove& move, std::span<const double> means, std::span<const double> variances, double n,
                  std::vector<float>& running_mean, std::vector<float>& running_variance);

/// Collective over the group: the part of a rank without samples in the others' forward or backward pass.
void join_forward(const Network& network, const PassContext& pass, Statistics& statistics);
void join_backward(const Network& network, const PassContext& pass);

}  // namespace lockstep::nn::host

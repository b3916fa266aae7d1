// Statistics of batch normalization: the update of running ones, and the statistics over the samples of several ranks.
// Invariant: ranks of a group sum arrays of the same lengths in the same order, with any number of samples, so their
// running statistics stay equal.
// Used by batch normalization, and by the host's executor for a rank without samples.
#pragma once

#include <span>
#include <vector>

#include "nn/host/layers.hpp"

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

/// Collective over the group: replaces sums over this rank's values, followed by their number, by the means and the
/// number over all ranks. Throws core::Error (usage) if the number is 1.
void share_means(const Node& node, const PassContext& pass, std::span<double> sums_and_n);
/// Collective likewise: replaces squared deviations from these means by variances.
void share_variances(const PassContext& pass, double n, std::span<double> squares);

/// The means and variances are those of all `n` values of the group.
void move_towards(const RunningMove& move, std::span<const double> means, std::span<const double> variances, double n,
                  std::vector<float>& running_mean, std::vector<float>& running_variance);

/// Collective over the group if the node is a batch normalization: takes part in the others' forward or backward pass
/// for a rank without samples.
void join_forward(const Node& node, const PassContext& pass, Statistics& statistics);
void join_backward(const Node& node, const PassContext& pass);

}  // namespace lockstep::nn::host

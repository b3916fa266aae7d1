#include "nn/ops/batch_norm/host_statistics.hpp"

#include <algorithm>

namespace lockstep::nn::host {

void share_means(const Node& node, const PassContext& pass, std::span<double> sums_and_n) {
  pass.sum(sums_and_n);
  const double n = sums_and_n.back();
  if (n == 1) fail_for_single_value(node);
  for (double& value : sums_and_n.first(sums_and_n.size() - 1)) value /= n;
}

void share_variances(const PassContext& pass, double n, std::span<double> squares) {
  pass.sum(squares);
  for (double& value : squares) value /= n;
}

void move_towards(const RunningMove& move, std::span<const double> means, std::span<const double> variances, double n,
                  std::vector<float>& running_mean, std::vector<float>& running_variance) {
  for (std::size_t c = 0; c < means.size(); ++c) {
    move(running_mean[c], means[c]);
    move(running_variance[c], variances[c] * (n / (n - 1)));
  }
}

void join_forward(const Node& node, const PassContext& pass, Statistics& statistics) {
  const auto* const layer = std::get_if<BatchNorm>(&node.layer);
  if (layer == nullptr) return;
  std::vector<double> means_and_n(node.output[0] + 1), variances(node.output[0]);
  share_means(node, pass, means_and_n);
  const double n = means_and_n.back();
  share_variances(pass, n, variances);
  if (n == 0 || pass.numbers.share_of_step == 0) return;
  move_towards(RunningMove{*layer, pass}, std::span{means_and_n}.first(variances.size()), variances, n,
               statistics[static_cast<std::size_t>(node.statistics[0])],
               statistics[static_cast<std::size_t>(node.statistics[1])]);
}

void join_backward(const Node& node, const PassContext& pass) {
  if (!std::holds_alternative<BatchNorm>(node.layer)) return;
  std::vector<double> sums(2 * node.output[0]);
  pass.sum(sums);
}

}  // namespace lockstep::nn::host

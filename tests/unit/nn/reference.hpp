// A network run forward and backward in double precision by the plainest loops: the expected results of an executor.
// Invariant: values and gradients are in PyTorch's order of elements, samples one after the other; nothing is reused.
// Used by the tests of nn and of its backends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "nn/executor.hpp"
#include "nn/graph/network.hpp"

namespace lockstep::nn {

struct ReferenceBatch {
  std::uint64_t n = 0;
  std::vector<double> x{};              ///< {n, ...shape of the input}
  std::vector<std::int64_t> ids{};      ///< {n, columns}, for a network that begins with ids
  std::vector<std::int64_t> classes{};  ///< {n, rows of the output}, for cross_entropy and nll
  std::vector<double> targets{};        ///< {n, outputs}, for mse
};

struct ReferenceOptions {
  Loss loss = Loss::cross_entropy;
  double label_smoothing = 0;
  std::uint64_t bn_group = 0;  ///< as in ExecutorOptions; the last group of a call may be smaller
  bool is_training = true;
  /// Whether dropout keeps element `element` of the batch's sample `sample`. Unset: keeps all, but still scales.
  std::function<bool(int node, std::uint64_t sample, std::uint64_t element)> keeps{};
};

struct NodePass;

/// Begins with parameters of 0 and statistics at their initial values.
class Reference {
 public:
  explicit Reference(Network network);

  [[nodiscard]] const Network& network() const noexcept { return network_; }
  [[nodiscard]] std::vector<double>& parameter(std::size_t i) { return parameters_.at(i); }
  [[nodiscard]] std::vector<double>& statistic(std::size_t i) { return statistics_.at(i); }

  /// Cross-entropy includes the softmax, with labels smoothed as in PyTorch; nll is minus the class's output, mse the
  /// mean over a row's outputs. Training also moves the running statistics, once per call, as in nn::BatchNorm.
  LossSums forward(const ReferenceBatch& batch, const ReferenceOptions& options);

  /// Computes gradients of `scale` times the summed loss of the last forward(), each sample's the mean of its rows.
  void backward(double scale);

  /// The gradient of parameter `i`, after backward().
  [[nodiscard]] const std::vector<double>& gradient(std::size_t i) const { return gradients_.at(i); }
  /// The result of node `i` in forward(), {n, ...output}.
  [[nodiscard]] const std::vector<double>& value(std::size_t i) const { return values_.at(i); }
  /// The gradient with respect to the result of node `i`, after backward().
  [[nodiscard]] const std::vector<double>& value_gradient(std::size_t i) const { return value_gradients_.at(i); }

 private:
  using Tensors = std::vector<std::vector<double>>;

  [[nodiscard]] NodePass pass_of(std::size_t i);

  Network network_;
  Tensors parameters_{}, gradients_{}, statistics_{};
  Tensors values_{}, value_gradients_{};
  ReferenceBatch batch_{};
  ReferenceOptions options_{};
};

}  // namespace lockstep::nn

// The function that training minimizes, and its gradient with respect to the network's output.
// Invariant: sums over rows in double, in the order of samples, with any number of threads.
// Used by nn/host/program.
#pragma once

#include <vector>

#include "nn/host/layers.hpp"

namespace lockstep::nn::host {

class HostLoss {
 public:
  /// `output`: {rows of all samples, features}, one sample after the other.
  HostLoss(Builder& builder, const Tensor& output);

  /// Throws core::Error (usage) if a label is not a class.
  [[nodiscard]] LossSums forward(const PassContext& pass);
  /// The gradient of the output, after backward(), in the type of activations. It is float32 for a log_softmax, whose
  /// own gradient is rounded instead.
  [[nodiscard]] const Tensor& gradient() const noexcept { return gradient_; }
  /// Computes the gradient of `scale` times the loss, to which each sample contributes the mean of its rows.
  void backward(float scale);

 private:
  /// The results of one row. `gradient` may be null.
  struct Row {
    double loss = 0;
    bool is_top1 = false;
    bool is_top5 = false;
  };
  [[nodiscard]] Row cross_entropy(const float* logits, std::size_t label, float* gradient) const;
  [[nodiscard]] Row negative_log(const float* outputs, std::size_t label, float* gradient) const;
  void rank_label(const float* outputs, std::size_t label, Row& row) const;
  [[nodiscard]] Row mean_square(const float* output, const float* target, float* gradient) const;
  void check_labels(const std::int64_t* labels) const;

  const Storage& storage_;
  Loss loss_;
  double label_smoothing_;
  bool is_training_;
  std::size_t rows_of_sample_;
  std::size_t n_;          ///< rows
  std::size_t n_outputs_;  ///< of a row
  Tensor output_;
  Tensor floats_;  ///< the output as float32: itself, or a copy
  Tensor float_gradient_{};
  Tensor gradient_{};  ///< passed to the network's last node: itself, or a rounded copy
  std::vector<Row> rows_;
};

}  // namespace lockstep::nn::host

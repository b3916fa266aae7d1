#include "nn/host/loss.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "nn/host/elements.hpp"
#include "nn/host/softmax_loops.hpp"

namespace lockstep::nn::host {

HostLoss::HostLoss(Builder& builder, const Tensor& output)
    : storage_{builder.storage},
      loss_{builder.options.loss},
      label_smoothing_{builder.options.label_smoothing},
      is_training_{builder.is_training},
      rows_of_sample_{static_cast<std::size_t>(n_sample_rows(builder.network.output()))},
      n_{static_cast<std::size_t>(builder.n) * rows_of_sample_},
      n_outputs_{static_cast<std::size_t>(n_elements(builder.network.output())) / rows_of_sample_},
      output_{builder.use(output)},
      floats_{output},
      rows_(n_) {
  const Desc floats = plain_desc(dims_of(output.desc));
  core::require(output.desc == plain_desc(dims_of(output.desc), type_of(output.desc)),
                "the network's output has a plain layout");
  if (output.desc != floats) floats_ = builder.make(floats);
  if (!is_training_) return;
  float_gradient_ = gradient_ = builder.make(floats);
  const bool is_rounded_later = std::holds_alternative<LogSoftmax>(builder.network.nodes().back().layer);
  if (type_of(floats) != builder.type && !is_rounded_later)
    gradient_ = builder.make(plain_desc(dims_of(floats), builder.type));
}

LossSums HostLoss::forward(const PassContext& pass) {
  auto* const output = storage_.at<float>(floats_.place);
  if (type_of(output_.desc) != type_of(floats_.desc))
    loops().bfloats.to_floats(storage_.at<const core::bfloat16>(output_.place), output, n_ * n_outputs_);
  auto* const gradient = is_training_ ? storage_.at<float>(float_gradient_.place) : nullptr;
  const auto* const labels = reinterpret_cast<const std::int64_t*>(pass.batch.y.data());
  const auto* const targets = reinterpret_cast<const float*>(pass.batch.y.data());
  if (loss_ != Loss::mse) check_labels(labels);
  for_parts(n_, least_elements / 4 / n_outputs_ + 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t at = i * n_outputs_;
      float* const of_row = gradient == nullptr ? nullptr : gradient + at;
      switch (loss_) {
        case Loss::cross_entropy:
          rows_[i] = cross_entropy(output + at, static_cast<std::size_t>(labels[i]), of_row);
          break;
        case Loss::nll: rows_[i] = negative_log(output + at, static_cast<std::size_t>(labels[i]), of_row); break;
        case Loss::mse: rows_[i] = mean_square(output + at, targets + at, of_row); break;
      }
    }
  });
  LossSums sums;
  sums.n = n_;
  for (const Row& row : rows_) {
    sums.loss += row.loss;
    sums.n_top1 += row.is_top1 ? 1 : 0;
    sums.n_top5 += row.is_top5 ? 1 : 0;
  }
  return sums;
}

void HostLoss::backward(float scale) {
  auto* const gradient = storage_.at<float>(float_gradient_.place);
  loops().scale(gradient, scale / static_cast<float>(rows_of_sample_), gradient, n_ * n_outputs_);
  if (type_of(gradient_.desc) != type_of(float_gradient_.desc))
    loops().bfloats.from_floats(gradient, storage_.at<core::bfloat16>(gradient_.place), n_ * n_outputs_);
}

/// With smoothing e of C classes the target is 1 - e + e / C for the label and e / C for the others, as in PyTorch.
HostLoss::Row HostLoss::cross_entropy(const float* logits, std::size_t label, float* gradient) const {
  const SoftmaxLoops& softmax = softmax_loops();
  const auto [max, total] = softmax.max_and_total(logits, n_outputs_);
  const double sum = softmax.exponentials(logits, max, n_outputs_, gradient);
  const double log_sum = static_cast<double>(max) + std::log(sum), n_classes = static_cast<double>(n_outputs_);
  const double of_label = static_cast<double>(logits[label]), share = label_smoothing_ / n_classes;
  Row row;
  row.loss = (1 - label_smoothing_) * (log_sum - of_label) + share * (n_classes * log_sum - total);
  if (gradient != nullptr) {
    softmax.scale_and_subtract(gradient, static_cast<float>(1 / sum), static_cast<float>(share), gradient, n_outputs_);
    // In double, because float32 does not hold the difference from 1 of a class that is nearly certain.
    gradient[label] = static_cast<float>(std::exp(of_label - log_sum) - share - (1 - label_smoothing_));
  }
  rank_label(logits, label, row);
  return row;
}

HostLoss::Row HostLoss::negative_log(const float* outputs, std::size_t label, float* gradient) const {
  Row row;
  row.loss = -static_cast<double>(outputs[label]);
  if (gradient != nullptr) {
    std::fill_n(gradient, n_outputs_, 0.0f);
    gradient[label] = -1;
  }
  rank_label(outputs, label, row);
  return row;
}

void HostLoss::rank_label(const float* outputs, std::size_t label, Row& row) const {
  const std::size_t n_before = softmax_loops().n_before(outputs, n_outputs_, label);
  const bool is_number = std::isfinite(outputs[label]);
  row.is_top1 = is_number && n_before == 0;
  row.is_top5 = is_number && n_before < 5;
}

HostLoss::Row HostLoss::mean_square(const float* output, const float* target, float* gradient) const {
  const double n = static_cast<double>(n_outputs_);
  Row row;
  for (std::size_t o = 0; o < n_outputs_; ++o) {
    const double difference = static_cast<double>(output[o]) - static_cast<double>(target[o]);
    row.loss += difference * difference / n;
    if (gradient != nullptr) gradient[o] = static_cast<float>(2 * difference / n);
  }
  return row;
}

void HostLoss::check_labels(const std::int64_t* labels) const {
  for (std::size_t i = 0; i < n_; ++i) {
    if (labels[i] < 0 || static_cast<std::size_t>(labels[i]) >= n_outputs_) {
      core::fail_usage({.what = fmt::format("label {} in the data", labels[i]),
                        .where = loss_ == Loss::nll ? "nll" : "cross-entropy",
                        .expected = fmt::format("classes from 0 to {}, one per output of the model", n_outputs_ - 1)});
    }
  }
}

}  // namespace lockstep::nn::host

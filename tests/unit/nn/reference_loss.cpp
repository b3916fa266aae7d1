#include <algorithm>
#include <cmath>
#include <span>

#include "core/error.hpp"
#include "unit/nn/reference_layers.hpp"

namespace lockstep::nn {
namespace {

/// The number of classes ahead of `right`: those with a greater output, and earlier ones with an equal output. All are
/// ahead of NaN.
std::uint64_t place_of(std::span<const double> z, std::size_t right) {
  std::uint64_t n_ahead = 0;
  for (std::size_t i = 0; i < z.size(); ++i)
    n_ahead += i < right ? !(z[i] < z[right]) : i > right && !(z[i] <= z[right]);
  return n_ahead;
}

void add_cross_entropy(std::span<const double> z, std::size_t right, double smoothing, double scale, LossSums& sums,
                       double* dz) {
  core::require(right < z.size(), "a class is one of the outputs");
  const double n = static_cast<double>(z.size());
  const double greatest = *std::max_element(z.begin(), z.end());
  double sum = 0;
  for (const double value : z) sum += std::exp(value - greatest);
  for (std::size_t i = 0; i < z.size(); ++i) {
    const double log_probability = z[i] - greatest - std::log(sum);
    const double target = (i == right ? 1 - smoothing : 0) + smoothing / n;
    sums.loss -= target * log_probability;
    if (dz != nullptr) dz[i] = scale * (std::exp(log_probability) - target);
  }
}

void add_nll(std::span<const double> z, std::size_t right, double scale, LossSums& sums, double* dz) {
  core::require(right < z.size(), "a class is one of the outputs");
  sums.loss -= z[right];
  if (dz != nullptr) dz[right] = -scale;
}

void add_place(std::span<const double> z, std::size_t right, LossSums& sums) {
  const std::uint64_t place = place_of(z, right);
  sums.n_top1 += place < 1;
  sums.n_top5 += place < 5;
}

void add_mse(std::span<const double> z, const double* target, double scale, LossSums& sums, double* dz) {
  const double n = static_cast<double>(z.size());
  for (std::size_t i = 0; i < z.size(); ++i) {
    const double difference = z[i] - target[i];
    sums.loss += difference * difference / n;
    if (dz != nullptr) dz[i] = scale * 2 * difference / n;
  }
}

}  // namespace

LossSums loss_of(const ReferenceBatch& batch, const ReferenceOptions& options, const Tensor& y, const Shape& output,
                 double scale, Tensor* dy) {
  const std::uint64_t n_rows = n_sample_rows(output), n_outputs = n_elements(output) / n_rows;
  scale /= static_cast<double>(n_rows);
  LossSums sums;
  sums.n = batch.n * n_rows;
  for (std::size_t row = 0; row < sums.n; ++row) {
    const std::size_t begin = row * n_outputs;
    const std::span<const double> z{y.data() + begin, n_outputs};
    double* dz = dy == nullptr ? nullptr : dy->data() + begin;
    if (options.loss == Loss::mse) {
      add_mse(z, &batch.targets.at(begin), scale, sums, dz);
      continue;
    }
    const auto right = static_cast<std::size_t>(batch.classes.at(row));
    if (options.loss == Loss::cross_entropy)
      add_cross_entropy(z, right, options.label_smoothing, scale, sums, dz);
    else
      add_nll(z, right, scale, sums, dz);
    add_place(z, right, sums);
  }
  return sums;
}

}  // namespace lockstep::nn

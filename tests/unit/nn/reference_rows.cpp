#include <cmath>

#include "unit/nn/reference_layers.hpp"

namespace lockstep::nn {
namespace {

/// Normalizes the row that begins at `begin`; returns the inverse of its deviation.
double normalize(const LayerNorm& norm, const Tensor& x, std::uint64_t begin, Tensor& row) {
  const auto n = static_cast<double>(row.size());
  double mean = 0, variance = 0;
  for (std::uint64_t i = 0; i < row.size(); ++i) mean += x[begin + i] / n;
  for (std::uint64_t i = 0; i < row.size(); ++i) row[i] = x[begin + i] - mean;
  for (const double deviation : row) variance += deviation * deviation / n;
  for (double& deviation : row) deviation /= std::sqrt(variance + norm.eps);
  return 1 / std::sqrt(variance + norm.eps);
}

}  // namespace

void forward(const LayerNorm& norm, const NodePass& pass) {
  Tensor row(pass.parameters[0]->size());
  for (std::uint64_t begin = 0; begin < pass.y->size(); begin += row.size()) {
    normalize(norm, *pass.x[0], begin, row);
    for (std::uint64_t i = 0; i < row.size(); ++i)
      (*pass.y)[begin + i] = row[i] * (*pass.parameters[0])[i] + (*pass.parameters[1])[i];
  }
}

void backward(const LayerNorm& norm, const NodePass& pass) {
  Tensor row(pass.parameters[0]->size());
  for (std::uint64_t begin = 0; begin < pass.dy->size(); begin += row.size()) {
    const double inverse = normalize(norm, *pass.x[0], begin, row), *const dy = pass.dy->data() + begin;
    double sum = 0, product = 0;
    for (std::uint64_t i = 0; i < row.size(); ++i) {
      (*pass.d_parameters[0])[i] += dy[i] * row[i];
      (*pass.d_parameters[1])[i] += dy[i];
      sum += dy[i] * (*pass.parameters[0])[i] / static_cast<double>(row.size());
      product += dy[i] * (*pass.parameters[0])[i] * row[i] / static_cast<double>(row.size());
    }
    for (std::uint64_t i = 0; i < row.size(); ++i)
      (*pass.dx[0])[begin + i] += inverse * (dy[i] * (*pass.parameters[0])[i] - sum - row[i] * product);
  }
}

}  // namespace lockstep::nn

#include "nn/cuda/rank_groups.hpp"

#include <algorithm>

namespace lockstep::nn::cuda {
namespace {

using runtime::Buffer;
using runtime::DeviceSpan;

template <class T>
Buffer make(std::size_t n) {
  return Buffer{core::Bytes{n * sizeof(T)}, runtime::Memory::device};
}

template <class T>
T* in(const Buffer& buffer) {
  return buffer.on_device<T>().data();
}

void clear(runtime::Stream& stream, const Buffer& buffer) { stream.fill(buffer.on_device<std::byte>(), std::byte{0}); }

}  // namespace

void share_moments(PassContext& pass, const SharedMoments& of, double eps) {
  const std::size_t n = of.n_channels;
  double* const squares = of.shared + n + 1;
  enqueue(pass.stream, WeighMeans{n, of.moments, of.shared});
  pass.hooks->sum(DeviceSpan<double>::at(of.shared, n + 1), pass.stream);
  enqueue(pass.stream, WeighDeviations{n, of.moments, of.shared, squares});
  pass.hooks->sum(DeviceSpan<double>::at(squares, n), pass.stream);
  enqueue(pass.stream, JoinMoments{n, of.shared, squares, eps, of.moments, of.mean, of.inverse});
}

void share_gradients(PassContext& pass, std::size_t n_channels, GradientSums* sums) {
  static_assert(sizeof(GradientSums) == 2 * sizeof(double));
  pass.hooks->sum(DeviceSpan<double>::at(reinterpret_cast<double*>(sums), 2 * n_channels), pass.stream);
}

EmptyRank::EmptyRank(const Network& network) : values_{layouts_of(network)} {
  std::size_t n = 0;
  for (std::size_t i = 0; i < values_.size(); ++i)
    if (std::holds_alternative<BatchNorm>(network.nodes()[i].layer)) n = std::max(n, values_[i].padded_channels);
  moments_ = make<Moments>(n);
  shared_ = make<double>(shared_elements(n));
  mean_ = make<float>(n);
  inverse_ = make<float>(n);
  sums_ = make<GradientSums>(n);
}

void EmptyRank::forward(PassContext& pass, const Network& network, const std::vector<float*>& statistics) const {
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const Node& node = network.nodes()[i];
    const auto* const layer = std::get_if<BatchNorm>(&node.layer);
    if (layer == nullptr) continue;
    const std::size_t n = values_[i].padded_channels;
    auto* const moments = in<Moments>(moments_);
    clear(pass.stream, moments_);
    share_moments(pass, {n, moments, in<double>(shared_), in<float>(mean_), in<float>(inverse_)}, layer->eps);
    const auto statistic = [&](std::size_t which) {
      return statistics[static_cast<std::size_t>(node.statistics[which])];
    };
    enqueue(pass.stream, MoveStatistics{1, n, moments, layer->momentum, pass.numbers, statistic(0), statistic(1)});
  }
}

void EmptyRank::backward(PassContext& pass, const Network& network) const {
  for (std::size_t i = values_.size(); i-- > 0;) {
    if (!std::holds_alternative<BatchNorm>(network.nodes()[i].layer)) continue;
    clear(pass.stream, sums_);
    share_gradients(pass, values_[i].padded_channels, in<GradientSums>(sums_));
  }
}

std::size_t EmptyRank::n_bytes() const noexcept {
  std::size_t n = 0;
  for (const Buffer* buffer : {&moments_, &shared_, &mean_, &inverse_, &sums_})
    n += buffer->on_device<std::byte>().size();
  return n;
}

}  // namespace lockstep::nn::cuda

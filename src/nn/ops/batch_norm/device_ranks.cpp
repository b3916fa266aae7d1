#include "nn/ops/batch_norm/device_ranks.hpp"

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
  enqueue(pass.stream, ShareMoments{of.n_channels, of.moments, of.shared});
  pass.hooks->sum(DeviceSpan<double>::at(of.shared, shared_elements(of.n_channels)), pass.stream);
  enqueue(pass.stream, JoinMoments{of.n_channels, of.shared, eps, of.moments, of.mean, of.inverse});
}

void share_gradients(PassContext& pass, std::size_t n_channels, GradientSums* sums) {
  static_assert(sizeof(GradientSums) == 2 * sizeof(double));
  pass.hooks->sum(DeviceSpan<double>::at(reinterpret_cast<double*>(sums), 2 * n_channels), pass.stream);
}

EmptyRank::EmptyRank(const Network& network) : values_{layouts_of(network)} {
  std::size_t n = 0;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const auto& normalized = normalized_.emplace_back(normalization_at(network, {static_cast<int>(i)}));
    if (normalized) n = std::max(n, values_[*normalized].padded_channels);
  }
  moments_ = make<Moments>(n);
  shared_ = make<double>(shared_elements(n));
  mean_ = make<float>(n);
  inverse_ = make<float>(n);
}

void EmptyRank::forward(PassContext& pass, const Network& network, std::size_t node,
                        const std::vector<float*>& statistics) const {
  if (!normalized_[node]) return;
  const Node& normalized = network.nodes()[*normalized_[node]];
  const auto& layer = std::get<BatchNorm>(normalized.layer);
  const std::size_t n = values_[*normalized_[node]].padded_channels;
  auto* const moments = in<Moments>(moments_);
  clear(pass.stream, moments_);
  share_moments(pass, {n, shared(), moments, in<float>(mean_), in<float>(inverse_)}, layer.eps);
  const auto statistic = [&](std::size_t which) {
    return statistics[static_cast<std::size_t>(normalized.statistics[which])];
  };
  enqueue(pass.stream, MoveStatistics{1, n, moments, layer.momentum, pass.numbers, statistic(0), statistic(1)});
}

void EmptyRank::backward(PassContext& pass, std::size_t node) const {
  if (!normalized_[node]) return;
  clear(pass.stream, shared_);
  share_gradients(pass, values_[*normalized_[node]].padded_channels, as_gradient_sums(shared()));
}

std::size_t EmptyRank::n_bytes() const noexcept {
  std::size_t n = 0;
  for (const Buffer* buffer : {&moments_, &shared_, &mean_, &inverse_}) n += buffer->on_device<std::byte>().size();
  return n;
}

}  // namespace lockstep::nn::cuda

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

EmptyRank::EmptyRank(const Network& network) : values_{layouts_of(network)}, normalized_{normalizations(network)} {
  std::size_t n = 0;
  for (const std::size_t i : normalized_) n = std::max(n, values_[i].padded_channels);
  moments_ = make<Moments>(n);
  shared_ = make<double>(shared_elements(n));
  mean_ = make<float>(n);
  inverse_ = make<float>(n);
}

void EmptyRank::forward(PassContext& pass, const Network& network, const std::vector<float*>& statistics) const {
  for (const std::size_t i : normalized_) {
    const Node& node = network.nodes()[i];
    const auto& layer = std::get<BatchNorm>(node.layer);
    const std::size_t n = values_[i].padded_channels;
    auto* const moments = in<Moments>(moments_);
    clear(pass.stream, moments_);
    share_moments(pass, {n, shared(), moments, in<float>(mean_), in<float>(inverse_)}, layer.eps);
    const auto statistic = [&](std::size_t which) {
      return statistics[static_cast<std::size_t>(node.statistics[which])];
    };
    enqueue(pass.stream, MoveStatistics{1, n, moments, layer.momentum, pass.numbers, statistic(0), statistic(1)});
  }
}

void EmptyRank::backward(PassContext& pass) const {
  for (std::size_t k = normalized_.size(); k-- > 0;) {
    clear(pass.stream, shared_);
    share_gradients(pass, values_[normalized_[k]].padded_channels, as_gradient_sums(shared()));
  }
}

std::size_t EmptyRank::n_bytes() const noexcept {
  std::size_t n = 0;
  for (const Buffer* buffer : {&moments_, &shared_, &mean_, &inverse_}) n += buffer->on_device<std::byte>().size();
  return n;
}

}  // namespace lockstep::nn::cuda

#include "nn/cuda/batch_sender.hpp"

#include <algorithm>

namespace lockstep::nn::cuda {
namespace {

using runtime::Buffer;
using runtime::Memory;

constexpr std::size_t line = 256;  // bytes

std::size_t whole_lines(std::size_t n_bytes) { return (n_bytes + line - 1) / line * line; }

}  // namespace

BatchSender::BatchSender(const Sizes& sizes)
    : ids_at_{whole_lines(sizes.y)},
      views_at_{ids_at_ + whole_lines(sizes.ids)},
      levels_at_{views_at_ + whole_lines(sizes.views)},
      x_at_{levels_at_ + whole_lines(sizes.levels)},
      x_bytes_{sizes.x} {
  const core::Bytes size{x_at_ + x_bytes_};
  for (Sent& sent : sent_) sent.here = Buffer{size, Memory::pinned};
  arriving_ = Buffer{size, Memory::device};
  arrived_ = Buffer{size, Memory::device};
}

// Samples are last, so one copy takes everything even if the batch is not full.
BatchSender::Places BatchSender::send(const data::Batch& batch, runtime::Stream& stream) {
  Sent& sent = sent_[n_sent_++ % sent_.size()];
  sent.done.wait();
  const std::span<std::byte> here = sent.here.bytes();
  const auto arrived = arrived_.on_device<std::byte>();
  std::ranges::copy(batch.y, here.begin());
  std::ranges::copy(std::as_bytes(batch.ids), here.subspan(ids_at_).begin());
  if (batch.images) {
    std::ranges::copy(std::as_bytes(batch.images->views), here.subspan(views_at_).begin());
    std::ranges::copy(std::as_bytes(batch.images->levels), here.subspan(levels_at_).begin());
  }
  std::ranges::copy(batch.x, here.subspan(x_at_).begin());
  if (const std::size_t n = x_at_ + batch.x.size(); batch.n > 0) {
    const auto arriving = arriving_.on_device<std::byte>().subspan(0, n);
    sending_.wait_for(is_taken_);
    sending_.copy(arriving, here.first(n));
    sent.done = sending_.mark();
    stream.wait_for(sent.done);
    stream.copy(arrived.subspan(0, n), arriving);
    is_taken_ = stream.mark();
  }
  std::byte* const there = arrived.data();
  return {there,
          there + ids_at_,
          there + views_at_,
          there + levels_at_,
          there + x_at_,
          here.subspan(x_at_, batch.x.size())};
}

}  // namespace lockstep::nn::cuda

#include "reduce_all/buffers.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"

namespace lockstep::reduce_all {
namespace {

constexpr std::size_t cache_line = 64;

std::size_t round_up_to_line(std::size_t bytes) { return (bytes + cache_line - 1) / cache_line * cache_line; }

// The size of each of the two pools. A cold pool alone exceeds twice the cache, because calls in place use only one.
std::size_t pool_bytes(core::Bytes largest, BufferMode mode, core::Bytes cache) {
  const std::size_t one = round_up_to_line(largest.value);
  return mode == BufferMode::cold ? one + 2 * cache.value : one;
}

runtime::Buffer allocate(std::size_t bytes, comm::Registration registration) {
  if (registration != comm::Registration::none) return comm::allocate_to_register({bytes});
  return runtime::Buffer{{bytes}, runtime::Memory::device};
}

}  // namespace

core::Bytes BufferPool::footprint(core::Bytes largest, BufferMode mode, core::Bytes cache) {
  return {2 * pool_bytes(largest, mode, cache)};
}

BufferPool::BufferPool(core::Bytes largest, BufferMode mode, bool in_place, core::Bytes cache,
                       comm::Registration registration)
    : mode_{mode},
      in_place_{in_place},
      cache_{cache},
      pool_bytes_{pool_bytes(largest, mode, cache)},
      registration_{registration},
      first_{allocate(pool_bytes_, registration)},
      second_{allocate(pool_bytes_, registration)} {}

void BufferPool::register_with(comm::DeviceGroup& group) {
  if (registration_ == comm::Registration::none || !group.registers() || known_to_.contains(&group)) return;
  auto& known = known_to_[&group];
  for (const runtime::Buffer* const buffer : {&first_, &second_}) {
    known.push_back(group.register_memory(buffer->on_device<std::byte>(), registration_));
    if (known.back() == nullptr)
      core::fail_system(
          fmt::format("{} refuses to register {} ({}), although it registered a smaller buffer; leave out --register",
                      group.name(), core::format_bytes({pool_bytes_}), comm::name(registration_)));
  }
}

std::size_t BufferPool::rotate(std::size_t bytes) {
  if (mode_ != BufferMode::cold) return 0;
  const std::size_t stride = round_up_to_line(bytes);
  if (position_ + stride > pool_bytes_) position_ = 0;
  const std::size_t offset = position_;
  position_ += stride;
  return offset;
}

CallBuffers BufferPool::next_pair(std::size_t bytes) {
  const std::size_t offset = rotate(bytes);
  return {first_.on_device<std::byte>().subspan(offset, bytes), second_.on_device<std::byte>().subspan(offset, bytes)};
}

CallBuffers BufferPool::next(const comm::Call& call, int rank, int n_ranks) {
  const std::size_t size = call.element_size();
  const core::Slice input = call.input(rank, n_ranks), output = call.output(rank, n_ranks);
  const CallBuffers pair = next_pair(call.bytes().value);
  if (in_place_)
    return {pair.input.subspan(input.offset * size, input.count * size),
            pair.input.subspan(output.offset * size, output.count * size)};
  return {pair.input.subspan(0, input.count * size), pair.output.subspan(0, output.count * size)};
}

}  // namespace lockstep::reduce_all

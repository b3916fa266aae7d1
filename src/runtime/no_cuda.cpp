// Where there is no GPU: the host is the device, and what is enqueued is done at once.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <limits>

#include "core/error.hpp"
#include "runtime/device.hpp"
#include "runtime/kernel/launch.hpp"

namespace lockstep::runtime {

Buffer::Buffer(core::Bytes size, Memory memory) : data_{nullptr, Free{memory}}, size_{size.value} {
  if (size_ == 0) return;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t pages = size_ / page + (size_ % page != 0 ? 1 : 0);
  if (pages <= std::numeric_limits<std::size_t>::max() / page)
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(page, pages * page)));
  if (!data_) core::fail_system(fmt::format("cannot allocate a buffer of {}", core::format_bytes(size)));
  std::memset(data_.get(), 0, size_);
}

void Buffer::Free::operator()(std::byte* data) const noexcept { std::free(data); }

void Stream::enqueue(const kernel::Operation& operation) {
  operation.on_host(operation.body.data(), operation.grid, kernel::ThreadOrder::ascending);
}

void Stream::wait() const {}

bool is_host_the_device() noexcept { return true; }

}  // namespace lockstep::runtime

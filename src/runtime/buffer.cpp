#include "runtime/buffer.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "core/error.hpp"

namespace lockstep::runtime {

HostBuffer::HostBuffer(core::Bytes size) : size_{size.value} {
  if (size_ == 0) return;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t pages = size_ / page + (size_ % page != 0 ? 1 : 0);
  if (pages <= std::numeric_limits<std::size_t>::max() / page)
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(page, pages * page)));
  if (!data_) core::fail_system(fmt::format("cannot allocate a buffer of {}", core::format_bytes(size)));
  std::memset(data_.get(), 0, size_);
}

void HostBuffer::Free::operator()(std::byte* data) const noexcept { std::free(data); }

core::Bytes last_level_cache() noexcept {
  const long bytes = std::max(sysconf(_SC_LEVEL3_CACHE_SIZE), sysconf(_SC_LEVEL2_CACHE_SIZE));
  return {bytes > 0 ? static_cast<std::uint64_t>(bytes) : std::uint64_t{32} << 20};
}

}  // namespace lockstep::runtime

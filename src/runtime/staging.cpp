#include "runtime/staging.hpp"

#include <algorithm>

namespace lockstep::runtime {

void Staging::fetch(DeviceSpan<const std::byte> from, std::span<std::byte> to) {
  core::require(from.size() == to.size(), "both sides have equal length");
  for (std::size_t done = 0; done < to.size();) {
    const auto chunk = pinned_.bytes().first(std::min(pinned_.bytes().size(), to.size() - done));
    stream_.copy(chunk, DeviceSpan<const std::byte>::at(from.data() + done, chunk.size()));
    stream_.wait();
    std::ranges::copy(chunk, to.begin() + static_cast<std::ptrdiff_t>(done));
    done += chunk.size();
  }
}

void Staging::send(std::span<const std::byte> from, DeviceSpan<std::byte> to) {
  core::require(from.size() == to.size(), "both sides have equal length");
  for (std::size_t done = 0; done < from.size();) {
    const auto chunk = pinned_.bytes().first(std::min(pinned_.bytes().size(), from.size() - done));
    std::ranges::copy(from.subspan(done, chunk.size()), chunk.begin());
    stream_.copy(DeviceSpan<std::byte>::at(to.data() + done, chunk.size()), chunk);
    stream_.wait();
    done += chunk.size();
  }
}

}  // namespace lockstep::runtime

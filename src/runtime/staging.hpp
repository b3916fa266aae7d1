// Copies arrays between the host's memory and a device's through a small pinned buffer.
// Invariant: a copy is done when the call returns; for rare use, because both sides wait for it.
// Used by parallel/ for what is saved and loaded, by nn/ and self-tests.
#pragma once

#include <cstddef>
#include <span>

#include "runtime/device.hpp"

namespace lockstep::runtime {

class Staging {
 public:
  explicit Staging(core::Bytes chunk = {std::uint64_t{8} << 20}) : pinned_{chunk, Memory::pinned} {}

  // Both have equal length. Other streams must be done with the device's memory.

  void fetch(DeviceSpan<const std::byte> from, std::span<std::byte> to);
  void send(std::span<const std::byte> from, DeviceSpan<std::byte> to);

 private:
  Buffer pinned_;
  Stream stream_{};
};

/// The same memory as bytes.
template <class T>
[[nodiscard]] DeviceSpan<std::byte> as_writable_bytes(DeviceSpan<T> elements) noexcept {
  return DeviceSpan<std::byte>::at(reinterpret_cast<std::byte*>(elements.data()), elements.size() * sizeof(T));
}
template <class T>
[[nodiscard]] DeviceSpan<const std::byte> as_bytes(DeviceSpan<T> elements) noexcept {
  return DeviceSpan<const std::byte>::at(reinterpret_cast<const std::byte*>(elements.data()),
                                         elements.size() * sizeof(T));
}

}  // namespace lockstep::runtime

// Memory that a device computes in, and the order in which it computes.
// Invariant: what only a device may touch is a DeviceSpan, which is no std::span and never becomes one by itself.
// Used by nn/, data/, comm/, parallel/ and the programs; implemented by no_cuda.cpp: without a GPU the host is the
// device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include "core/error.hpp"
#include "core/units.hpp"

namespace lockstep::runtime {

enum class Memory : std::uint8_t {
  host,
  pinned,  ///< of the host, where a device can read and write it by itself
  device
};

/// Whether the device is the host itself, which then may look at its memory.
[[nodiscard]] bool is_host_the_device() noexcept;

/// Elements in a device's memory; a pair of address and length, as std::span.
template <class T>
class DeviceSpan {
 public:
  DeviceSpan() noexcept = default;
  /// Of as many elements from an address that the device knows.
  static DeviceSpan at(T* data, std::size_t n) noexcept { return DeviceSpan{data, n}; }
  // A DeviceSpan of constant elements may be had from one of others.
  operator DeviceSpan<const T>() const noexcept  // NOLINT(google-explicit-constructor)
      requires(!std::is_const_v<T>) {
    return DeviceSpan<const T>::at(data_, n_);
  }

  [[nodiscard]] std::size_t size() const noexcept { return n_; }
  /// For the device.
  [[nodiscard]] T* data() const noexcept { return data_; }

 private:
  DeviceSpan(T* data, std::size_t n) noexcept : data_{data}, n_{n} {}

  T* data_ = nullptr;
  std::size_t n_ = 0;
};

/// What the device sees of the host's memory, for a host that is the device.
template <class T>
[[nodiscard]] DeviceSpan<T> on_device(std::span<T> elements) {
  core::require(is_host_the_device(), "the host is the device");
  return DeviceSpan<T>::at(elements.data(), elements.size());
}
template <class T>
[[nodiscard]] std::span<T> on_host(DeviceSpan<T> elements) {
  core::require(is_host_the_device(), "the host is the device");
  return {elements.data(), elements.size()};
}

/// Owned memory: page-aligned and zeroed, by the thread that asks for it where it is the host's (first touch places
/// it). Never resized.
class Buffer {
 public:
  Buffer() noexcept : data_{nullptr, Free{Memory::host}} {}
  /// Throws core::Error (system) if the memory cannot be had.
  explicit Buffer(core::Bytes size, Memory memory = Memory::host);

  /// Not of a device's memory.
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {data_.get(), size_}; }
  /// The same as elements; the size must be a multiple of sizeof(T).
  template <class T>
  [[nodiscard]] std::span<T> as() const noexcept {
    return {reinterpret_cast<T*>(data_.get()), size_ / sizeof(T)};
  }

 private:
  struct Free {
    Memory memory;
    void operator()(std::byte* data) const noexcept;
  };
  std::unique_ptr<std::byte[], Free> data_;
  std::size_t size_ = 0;
};

namespace kernel {
struct Operation;
}

/// What a device does one after another. On the host what is enqueued is done at once.
class Stream {
 public:
  /// Takes what it needs of the operation before it returns. Throws core::Error (system) if it cannot be started.
  void enqueue(const kernel::Operation& operation);
  /// Returns when all that was enqueued is done.
  void wait() const;
};

}  // namespace lockstep::runtime

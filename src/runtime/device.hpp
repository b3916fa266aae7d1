// Memory that a device computes in, and the order in which it computes.
// Invariant: what only a device may touch is a DeviceSpan, which is no std::span and never becomes one by itself.
// Used by nn/, data/, comm/, parallel/ and the programs. Where no accelerator.hpp is in use the host is the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include "core/error.hpp"
#include "core/units.hpp"

namespace lockstep::runtime {

namespace kernel {
struct Operation;
}
class Accelerator;
class Graph;
class Mark;
class Queue;

enum class Memory : std::uint8_t {
  host,
  pinned,  ///< of the host, where a device can read and write it by itself
  device
};

/// Of a stream where a device has several things to do that wait for nothing: what it begins with when it has room.
enum class Priority : std::uint8_t { usual, first };

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
  [[nodiscard]] DeviceSpan subspan(std::size_t offset, std::size_t n) const noexcept {
    return DeviceSpan{data_ + offset, n};
  }

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

/// Owned memory: zeroed, of the host page-aligned and touched first by the thread that asks for it, which places it.
/// Never resized.
class Buffer {
 public:
  Buffer() noexcept : data_{nullptr, Free{}} {}
  /// Throws core::Error (system) if the memory cannot be had. Where the host is the device all memory is its own.
  explicit Buffer(core::Bytes size, Memory memory = Memory::host);

  /// Of the device, from a library that takes it back by `release`.
  [[nodiscard]] static Buffer owning(std::byte* data, core::Bytes size, void (*release)(std::byte* data) noexcept);

  /// Not of a device's memory, unless the host is the device.
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {data_.get(), size_}; }
  /// The same as elements; the size must be a multiple of sizeof(T).
  template <class T>
  [[nodiscard]] std::span<T> as() const noexcept {
    return {reinterpret_cast<T*>(data_.get()), size_ / sizeof(T)};
  }
  /// Of pinned or device memory, for the device.
  template <class T>
  [[nodiscard]] DeviceSpan<T> on_device() const noexcept {
    return DeviceSpan<T>::at(reinterpret_cast<T*>(data_.get()), size_ / sizeof(T));
  }

 private:
  struct Free {
    Memory memory = Memory::host;
    Accelerator* of = nullptr;                            ///< null: the host's
    void (*release)(std::byte* data) noexcept = nullptr;  ///< of a library
    void operator()(std::byte* data) const noexcept;
  };
  std::unique_ptr<std::byte[], Free> data_;
  std::size_t size_ = 0;
};

/// A moment in a stream, for others to wait for. Empty: long past.
class Event {
 public:
  Event() noexcept;
  ~Event();
  Event(Event&&) noexcept;
  Event& operator=(Event&&) noexcept;

  /// For the host: returns when it is over.
  void wait() const;
  /// Without waiting.
  [[nodiscard]] bool is_done() const;
  /// Between two of Stream::mark_time() that are over, by the device's clock.
  [[nodiscard]] core::Seconds since(const Event& earlier) const;

 private:
  friend class Stream;
  std::unique_ptr<Mark> mark_;
  double host_seconds_ = 0;  ///< where the host is the device
};

/// What a stream was given, for Stream::replay(): it costs the host one call, however much it is. Must outlive what of
/// it is enqueued.
class Recording {
 public:
  Recording() noexcept;
  ~Recording();
  Recording(Recording&&) noexcept;
  Recording& operator=(Recording&&) noexcept;

 private:
  friend class Stream;
  std::unique_ptr<Graph> graph_;
};

/// What a device does one after another; several streams in no order but that of their events. On the host what is
/// enqueued is done at once. Members throw core::Error (system) if the device refuses.
class Stream {
 public:
  /// Of the accelerator in use, else of the host.
  Stream();
  explicit Stream(Priority priority);
  ~Stream();
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;

  /// Takes what it needs of the operation before it returns.
  void enqueue(const kernel::Operation& operation);
  /// Of as many bytes as `from` has. The host's memory must be pinned, and stay as it is until the copy is done.
  void copy(DeviceSpan<std::byte> to, std::span<const std::byte> from);
  void copy(std::span<std::byte> to, DeviceSpan<const std::byte> from);
  void copy(DeviceSpan<std::byte> to, DeviceSpan<const std::byte> from);
  /// Sets every byte.
  void fill(DeviceSpan<std::byte> to, std::byte value);

  /// The end of what is enqueued so far.
  [[nodiscard]] Event mark();
  /// The same, for since(); takes the device longer.
  [[nodiscard]] Event mark_time();
  /// What is enqueued from here on begins after that.
  void wait_for(const Event& event);
  /// Returns when all that was enqueued is done.
  void wait() const;
  /// Without waiting.
  [[nodiscard]] bool is_done() const;

  /// Of a device: what this stream is given from here on, and others that wait for it, is recorded and not done. The
  /// host waits for nothing and allocates nothing meanwhile; nobody waits for what came before; and this stream waits
  /// for the others in the end.
  void begin_recording();
  [[nodiscard]] Recording end_recording();
  /// Both around `enqueue`. Where that throws nothing is left of it, and the stream does again what it is given.
  template <class Enqueue>
  [[nodiscard]] Recording record(const Enqueue& enqueue) {
    begin_recording();
    try {
      enqueue();
    } catch (...) {
      abandon_recording();
      throw;
    }
    return end_recording();
  }
  /// Enqueues all of it, in the same places and with the same values.
  void replay(const Recording& recording);

 private:
  void abandon_recording() noexcept;
  void copy_bytes(void* to, const void* from, std::size_t n_to, std::size_t n_from);
  std::unique_ptr<Queue> queue_;
};

}  // namespace lockstep::runtime

// Memory in which a device computes, and the order in which it computes.
// Invariant: memory that only a device may touch is a DeviceSpan, which is not a std::span and never converts to one
// implicitly.
// Used by nn/, data/, comm/, parallel/ and the programs. Without an accelerator.hpp in use, the host is the device.
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
  pinned,  ///< of the host, where a device can read and write it directly
  device
};

/// Priority of a stream on a device with several independent tasks: decides which one starts first when there is room.
enum class Priority : std::uint8_t { usual, first };

/// Whether the device is the host itself, so that the host may read its memory.
[[nodiscard]] bool is_host_the_device() noexcept;

/// Elements in a device's memory; a pair of address and length, like std::span.
template <class T>
class DeviceSpan {
 public:
  DeviceSpan() noexcept = default;
  /// `count` elements from an address that the device knows.
  static DeviceSpan at(T* data, std::size_t n) noexcept { return DeviceSpan{data, n}; }
  // A DeviceSpan of constant elements converts from one of mutable elements.
  operator DeviceSpan<const T>() const noexcept  // NOLINT(google-explicit-constructor)
      requires(!std::is_const_v<T>) {
    return DeviceSpan<const T>::at(data_, n_);
  }

  [[nodiscard]] std::size_t size() const noexcept { return n_; }
  /// An address for the device.
  [[nodiscard]] T* data() const noexcept { return data_; }
  [[nodiscard]] DeviceSpan subspan(std::size_t offset, std::size_t n) const noexcept {
    return DeviceSpan{data_ + offset, n};
  }

 private:
  DeviceSpan(T* data, std::size_t n) noexcept : data_{data}, n_{n} {}

  T* data_ = nullptr;
  std::size_t n_ = 0;
};

/// The host's memory as the device sees it, if the host is the device.
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

/// Owned memory: zeroed, page-aligned on the host, and first touched by the requesting thread, which places it. Never
/// resized.
class Buffer {
 public:
  Buffer() noexcept : data_{nullptr, Free{}} {}
  /// Throws core::Error (system) if there is not enough memory. If the host is the device, all memory is the host's.
  explicit Buffer(core::Bytes size, Memory memory = Memory::host);

  /// Device memory from a library, returned by `release`.
  [[nodiscard]] static Buffer owning(std::byte* data, core::Bytes size, void (*release)(std::byte* data) noexcept);

  /// Not for device memory, unless the host is the device.
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {data_.get(), size_}; }
  /// The same as elements; the size must be a multiple of sizeof(T).
  template <class T>
  [[nodiscard]] std::span<T> as() const noexcept {
    return {reinterpret_cast<T*>(data_.get()), size_ / sizeof(T)};
  }
  /// Pinned or device memory, as the device sees it.
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

/// A moment in a stream that others can wait for. An empty event has passed.
class Event {
 public:
  Event() noexcept;
  ~Event();
  Event(Event&&) noexcept;
  Event& operator=(Event&&) noexcept;

  /// Blocks the host until the moment has passed.
  void wait() const;
  /// Returns whether it has passed, without waiting.
  [[nodiscard]] bool is_done() const;
  /// Seconds between two events of Stream::mark_time(), both passed, by the device's clock.
  [[nodiscard]] core::Seconds since(const Event& earlier) const;

 private:
  friend class Stream;
  std::unique_ptr<Mark> mark_;
  double host_seconds_ = 0;  ///< used if the host is the device
};

/// Recorded operations of a stream, for Stream::replay(): one call of the host replays any number of them. Must outlive
/// its replays.
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

/// Operations that a device executes one after another; only events order several streams. On the host an operation is
/// done when it is enqueued. Members throw core::Error (system) if the device refuses.
class Stream {
 public:
  /// A stream of the accelerator in use, else of the host.
  Stream();
  explicit Stream(Priority priority);
  ~Stream();
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;

  /// Copies all that it needs of the operation before it returns.
  void enqueue(const kernel::Operation& operation);
  /// Copies all bytes of `from`. Host memory must be pinned and must not change until the copy is done.
  void copy(DeviceSpan<std::byte> to, std::span<const std::byte> from);
  void copy(std::span<std::byte> to, DeviceSpan<const std::byte> from);
  void copy(DeviceSpan<std::byte> to, DeviceSpan<const std::byte> from);
  /// Sets every byte.
  void fill(DeviceSpan<std::byte> to, std::byte value);

  /// Marks the end of the operations enqueued so far.
  [[nodiscard]] Event mark();
  /// The same, for since(); takes more time on the device.
  [[nodiscard]] Event mark_time();
  /// Operations enqueued after this call begin after the event.
  void wait_for(const Event& event);
  /// Returns when all enqueued operations are done.
  void wait() const;
  /// Returns whether all are done, without waiting.
  [[nodiscard]] bool is_done() const;

  /// On a device: operations given to this stream, and to others that wait for it, are recorded and not executed.
  /// During a recording the host waits for nothing and allocates nothing, and no stream waits for earlier operations.
  /// At the end this stream waits for the others.
  void begin_recording();
  [[nodiscard]] Recording end_recording();
  /// Records what `enqueue` enqueues. If it throws, the recording is dropped and the stream executes operations again.
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
  /// Enqueues all recorded operations, with the same addresses and values.
  void replay(const Recording& recording);

 private:
  void abandon_recording() noexcept;
  void copy_bytes(void* to, const void* from, std::size_t n_to, std::size_t n_from);
  std::unique_ptr<Queue> queue_;
};

}  // namespace lockstep::runtime

// What a device other than the host does for Buffer and Stream of device.hpp.
// Invariant: a process uses at most one at a time, because its memory and streams belong to one device; without one,
// the host is the device.
// Used by device.cpp; implemented by device_cuda.cpp and, for tests, by recorder/.
#pragma once

#include <cstddef>
#include <memory>

#include "core/units.hpp"
#include "runtime/device.hpp"

namespace lockstep::runtime {

/// A mark in a stream that others may wait for.
class Mark {
 public:
  virtual ~Mark() = default;
  /// Returns when the mark has passed.
  virtual void wait() const = 0;
  [[nodiscard]] virtual bool is_done() const = 0;
  /// Seconds between two marks of Queue::mark_time(), both passed.
  [[nodiscard]] virtual core::Seconds since(const Mark& earlier) const = 0;
};

/// The result of Queue::end_recording().
class Graph {
 public:
  virtual ~Graph() = default;
};

/// One ordered queue of operations of an accelerator. Members throw core::Error (system) if the device refuses.
class Queue {
 public:
  virtual ~Queue() = default;
  virtual void enqueue(const kernel::Operation& operation) = 0;
  /// Copies between memories of any kind; host memory must be pinned. `to` and `from` do not overlap.
  virtual void copy(void* to, const void* from, std::size_t n_bytes) = 0;
  virtual void fill(void* to, std::byte value, std::size_t n_bytes) = 0;
  [[nodiscard]] virtual std::unique_ptr<Mark> mark() = 0;
  [[nodiscard]] virtual std::unique_ptr<Mark> mark_time() = 0;
  /// Operations enqueued after this call begin after `mark`, which belongs to the same accelerator.
  virtual void wait_for(const Mark& mark) = 0;
  /// Returns when all enqueued operations are done.
  virtual void wait() = 0;
  [[nodiscard]] virtual bool is_done() = 0;
  /// As in Stream.
  virtual void begin_recording() = 0;
  [[nodiscard]] virtual std::unique_ptr<Graph> end_recording() = 0;
  virtual void replay(const Graph& graph) = 0;
};

class Accelerator {
 public:
  virtual ~Accelerator() = default;
  /// Zeroed, aligned for any access; pinned or device memory. Throws core::Error (system) if there is not enough.
  [[nodiscard]] virtual std::byte* allocate(std::size_t n_bytes, Memory memory) = 0;
  virtual void release(std::byte* data, Memory memory) noexcept = 0;
  [[nodiscard]] virtual std::unique_ptr<Queue> open_queue(Priority priority) = 0;
  /// The free memory of the device, shared by all processes that use it.
  [[nodiscard]] virtual core::Bytes available() = 0;
};

/// Seconds since a moment that stays the same for this process.
[[nodiscard]] core::Seconds host_clock();

/// Returns the accelerator in use; null if the host is the device.
[[nodiscard]] Accelerator* accelerator() noexcept;

/// Installs an accelerator and returns the previous one, whose buffers and streams must not be used meanwhile.
std::unique_ptr<Accelerator> exchange_accelerator(std::unique_ptr<Accelerator> next) noexcept;

}  // namespace lockstep::runtime

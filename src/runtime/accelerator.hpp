// What a device that is not the host does for Buffer and Stream of device.hpp.
// Invariant: at most one in use per process at a time, as all of its memory and streams are of one device; without one
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
  /// Returns when it is over.
  virtual void wait() const = 0;
  [[nodiscard]] virtual bool is_done() const = 0;
  /// Of two of Queue::mark_time() that are over.
  [[nodiscard]] virtual core::Seconds since(const Mark& earlier) const = 0;
};

/// What Queue::end_recording() gives.
class Graph {
 public:
  virtual ~Graph() = default;
};

/// One of an accelerator's orders of operations. Members throw core::Error (system) if the device refuses.
class Queue {
 public:
  virtual ~Queue() = default;
  virtual void enqueue(const kernel::Operation& operation) = 0;
  /// Between memories of any kind; of the host's it must be pinned. `to` and `from` do not overlap.
  virtual void copy(void* to, const void* from, std::size_t n_bytes) = 0;
  virtual void fill(void* to, std::byte value, std::size_t n_bytes) = 0;
  [[nodiscard]] virtual std::unique_ptr<Mark> mark() = 0;
  [[nodiscard]] virtual std::unique_ptr<Mark> mark_time() = 0;
  /// What is enqueued from here on begins after `mark`, which is of the same accelerator.
  virtual void wait_for(const Mark& mark) = 0;
  /// Returns when all that was enqueued is done.
  virtual void wait() = 0;
  [[nodiscard]] virtual bool is_done() = 0;
  /// As Stream has them.
  virtual void begin_recording() = 0;
  [[nodiscard]] virtual std::unique_ptr<Graph> end_recording() = 0;
  virtual void replay(const Graph& graph) = 0;
};

class Accelerator {
 public:
  virtual ~Accelerator() = default;
  /// Zeroed, aligned for any access; pinned or device memory. Throws core::Error (system) if it cannot be had.
  [[nodiscard]] virtual std::byte* allocate(std::size_t n_bytes, Memory memory) = 0;
  virtual void release(std::byte* data, Memory memory) noexcept = 0;
  [[nodiscard]] virtual std::unique_ptr<Queue> open_queue(Priority priority) = 0;
  /// Memory of the device that is left, for all processes that use it.
  [[nodiscard]] virtual core::Bytes available() = 0;
};

/// Of any moment that stays the same for this process.
[[nodiscard]] core::Seconds host_clock();

/// The one in use; null: the host is the device.
[[nodiscard]] Accelerator* accelerator() noexcept;

/// Puts one in use and gives back the one before. Buffers and streams of that one must not be used in the meantime.
std::unique_ptr<Accelerator> exchange_accelerator(std::unique_ptr<Accelerator> next) noexcept;

}  // namespace lockstep::runtime

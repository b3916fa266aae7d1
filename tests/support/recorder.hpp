// A device that keeps what it is given to do, judges it, and does it on the host when somebody waits for it.
// Invariant: an operation runs as late as is allowed: when the host waits for its stream, or for another one that waits
// for it. So what relies on an order that nobody asked for gives other results here, and is complained of too.
// Used by tests of what is enqueued on GPUs, where there is none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/accelerator.hpp"
#include "runtime/kernel/launch.hpp"

namespace lockstep::test {

enum class Bodies {
  run,
  skip  ///< operations are judged only, so that memory need not be there: results are zeros
};

class Recorder {
 public:
  explicit Recorder(runtime::kernel::ThreadOrder order = runtime::kernel::ThreadOrder::shuffled,
                    Bodies bodies = Bodies::run);
  ~Recorder();

  /// What Stream and Buffer take; the recorder must outlive it.
  [[nodiscard]] std::unique_ptr<runtime::Accelerator> device();

  /// More cannot be allocated on the device; 1 TiB unless limited.
  void limit_memory(core::Bytes all);

  /// What is wrong with what was enqueued so far, a sentence each: memory touched that is not allocated (such an
  /// operation never runs), or touched by two streams of which one writes and neither waits for the other.
  [[nodiscard]] const std::vector<std::string>& complaints() const noexcept;

  /// Bytes of the device that are allocated, and the most there were at once.
  [[nodiscard]] std::size_t n_bytes() const;
  [[nodiscard]] std::size_t peak_bytes() const;
  /// Allocations and releases, of pinned memory too, so far; a steady step has none.
  [[nodiscard]] int n_allocations() const;
  /// How often the host waited for a stream so far; a steady step never does.
  [[nodiscard]] int n_host_waits() const;
  [[nodiscard]] int n_replays() const;

  /// All that was enqueued since the last call, a line each: stream, name, grid, places in memory, and the kernel's own
  /// bytes as a digest. Two steps that give the same may be recorded once and replayed.
  [[nodiscard]] std::vector<std::string> take_lines();

 private:
  struct State;
  class Device;
  class Line;
  class Moment;
  std::unique_ptr<State> state_;
};

/// Puts a recorder's device in use while it lives.
class UseRecorder {
 public:
  explicit UseRecorder(Recorder& recorder) : before_{runtime::exchange_accelerator(recorder.device())} {}
  ~UseRecorder() { runtime::exchange_accelerator(std::move(before_)); }
  UseRecorder(const UseRecorder&) = delete;
  UseRecorder& operator=(const UseRecorder&) = delete;

 private:
  std::unique_ptr<runtime::Accelerator> before_;
};

}  // namespace lockstep::test

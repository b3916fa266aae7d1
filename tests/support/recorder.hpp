// A device that records its operations, judges them, and executes them on the host when something waits for them.
// Invariant: an operation runs as late as allowed: when the host waits for its stream, or for another one that waits
// for it. So code that relies on an order that it did not request gets other results here, and a complaint.
// Used by tests of what is enqueued on GPUs, if there is none.
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
  skip  ///< operations are only judged, so that memory need not exist: results are zeros
};

class Recorder {
 public:
  explicit Recorder(runtime::kernel::ThreadOrder order = runtime::kernel::ThreadOrder::shuffled,
                    Bodies bodies = Bodies::run);
  ~Recorder();

  /// The device for Stream and Buffer; the recorder must outlive it.
  [[nodiscard]] std::unique_ptr<runtime::Accelerator> device();

  /// Limits memory on the device; the default is 1 TiB.
  void limit_memory(core::Bytes all);

  /// Errors in what was enqueued so far, one sentence each: an operation touches memory that is not allocated (it then
  /// never runs), or two streams touch memory of which one writes and neither waits for the other.
  [[nodiscard]] const std::vector<std::string>& complaints() const noexcept;

  /// Allocated bytes of the device now, and the most at any time.
  [[nodiscard]] std::size_t n_bytes() const;
  [[nodiscard]] std::size_t peak_bytes() const;
  /// Allocations and releases so far, including pinned memory; a steady step has none.
  [[nodiscard]] int n_allocations() const;
  /// How often the host waited for a stream so far; a steady step never does.
  [[nodiscard]] int n_host_waits() const;
  [[nodiscard]] int n_replays() const;

  /// Everything enqueued since the last call, one line each: stream, name, grid, places in memory, and a digest of the
  /// kernel's own bytes. Of two steps with the same lines, one may be recorded and replayed for the other.
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

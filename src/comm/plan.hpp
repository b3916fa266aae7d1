// A plan: one collective call prepared once (algorithm, sizes, scratch, message space), run many times.
// Invariant: making a plan is collective and may allocate and communicate; running it allocates nothing.
// Used by reduce_all/, parallel/ and tests; made by registry.hpp's make_plan().
#pragma once

#include <cstddef>
#include <span>

#include "runtime/device.hpp"

namespace lockstep::comm {

/// Every rank calls all members in the same order across the plans of a transport.
class Plan {
 public:
  virtual ~Plan() = default;

  /// Local: sets the buffers of the following runs, of exactly the call's sizes. In place: all_reduce `input` is
  /// `output`; reduce_scatter `output` is this rank's part of `input`; all_gather `input` is this rank's part of
  /// `output`.
  virtual void bind(std::span<const std::byte> input, std::span<std::byte> output) = 0;

  /// Collective: executes the call; on return `output` holds the result and `input` may be changed.
  virtual void run() = 0;

  /// Collective: starts the call after all earlier operations of `stream`. The buffers belong to the plan until wait()
  /// returns or test() returns true.
  virtual void start(const runtime::Stream& stream) {
    stream.wait();
    begin();
  }
  /// Local: advances without waiting; returns true once the call is complete.
  [[nodiscard]] virtual bool test() = 0;
  /// Local: returns when the call is complete.
  virtual void wait() = 0;

 private:
  /// Like start(), for a host whose input is complete.
  virtual void begin() = 0;
};

}  // namespace lockstep::comm

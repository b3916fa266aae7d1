// The clock of every measurement.
// Invariant: monotonic, the same clock for all processes of a node.
// Used by all code that measures time: both programs, data/, metrics/, nn/host, parallel/. Decisions use
// core/clock.hpp.
#pragma once

#include <ctime>

#include "core/units.hpp"

namespace lockstep::core {

/// Seconds on CLOCK_MONOTONIC; only differences are meaningful.
[[nodiscard]] inline Seconds now() noexcept {
  std::timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return {static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9};
}

/// Time since construction.
class Stopwatch {
 public:
  [[nodiscard]] Seconds elapsed() const noexcept { return {now().value - start_.value}; }

 private:
  Seconds start_ = now();
};

}  // namespace lockstep::core

// Time for decisions: limits, intervals, pauses.
// Invariant: now() is monotonic; a clock is passed in, so that tests can set it. Measurements use only core/timer.hpp.
// Used by io/retry, runtime/ and training/.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "core/timer.hpp"
#include "core/units.hpp"

namespace lockstep::core {

/// Several threads may use it at once.
class Clock {
 public:
  virtual ~Clock() = default;

  /// Only differences are meaningful. Signal handlers may call it.
  [[nodiscard]] virtual Seconds now() const noexcept = 0;
  /// Seconds since 1970, to compare with dates that a batch system gives.
  [[nodiscard]] virtual std::int64_t date() const noexcept = 0;
  /// Returns when `time` has passed.
  virtual void sleep(Seconds time) const = 0;
  /// Returns when `time` has passed or `wake` is notified, or sooner; releases `lock` meanwhile.
  virtual void wait(std::condition_variable& wake, std::unique_lock<std::mutex>& lock, Seconds time) const = 0;
};

/// The clock CLOCK_MONOTONIC, as now(); its date is that of the system.
[[nodiscard]] const Clock& real_clock() noexcept;

/// Time since construction or the last restart(), by a clock that must outlive it.
class Timer {
 public:
  explicit Timer(const Clock& clock) noexcept : clock_{&clock}, start_{clock.now()} {}

  [[nodiscard]] Seconds elapsed() const noexcept { return {clock_->now().value - start_.value}; }
  void restart() noexcept { start_ = clock_->now(); }

 private:
  const Clock* clock_;
  Seconds start_;
};

}  // namespace lockstep::core

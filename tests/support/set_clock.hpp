// A clock that stands still until a test moves it, so that no test of a limit or an interval has to wait.
// Invariant: for tests only; in one process.
// Used by unit tests of io, runtime and training.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "core/clock.hpp"

namespace lockstep::support {

class SetClock : public core::Clock {
 public:
  /// `look`: the time that passes at each look at the clock, for code that must run by itself.
  explicit SetClock(core::Seconds look = {}) noexcept : look_{look} {}

  [[nodiscard]] core::Seconds now() const noexcept override {
    ++n_looks_;
    return {now_s_.fetch_add(look_.value) + look_.value};
  }
  /// Stays the same.
  [[nodiscard]] std::int64_t date() const noexcept override { return 1'800'000'000; }
  /// Takes time only on this clock.
  void sleep(core::Seconds time) const override {
    pauses_.push_back(time.value);
    advance(time);
  }
  /// Returns at once, because only advance() lets time pass.
  void wait(std::condition_variable& wake, std::unique_lock<std::mutex>& lock, core::Seconds) const override {
    ++n_waits_;
    wake.wait_for(lock, std::chrono::microseconds{100});
  }

  void advance(core::Seconds time) const noexcept { now_s_.fetch_add(time.value); }
  /// Returns when the one thread that waits by this clock has looked at the present time.
  void await_look() const {
    const long seen = n_waits_;
    while (n_waits_ < seen + 2) std::this_thread::sleep_for(std::chrono::microseconds{100});
  }
  [[nodiscard]] long n_looks() const noexcept { return n_looks_; }
  /// The seconds of each sleep(); only one thread may sleep by this clock.
  [[nodiscard]] const std::vector<double>& pauses() const noexcept { return pauses_; }

 private:
  core::Seconds look_;
  mutable std::atomic<double> now_s_{1000};
  mutable std::atomic<long> n_looks_{0};
  mutable std::atomic<long> n_waits_{0};
  mutable std::vector<double> pauses_{};
};

}  // namespace lockstep::support

// The position of this process, for its watchdog.
// Invariant: one call per step, so that the watchdog and its drill never disagree about the phase.
// Used by main(), the run, the sweep and the measuring loop.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "runtime/watch/watchdog.hpp"

namespace lockstep::reduce_all {

/// Reports the position of this process to the watchdog, and runs the faults of its drill.
class Progress {
 public:
  /// `drill`: null without faults; the same as the watchdog's.
  Progress(runtime::Watchdog& watchdog, runtime::Drill* drill) : watchdog_{watchdog}, drill_{drill} {}

  void enter(runtime::Activity phase) {
    phase_ = phase;
    watchdog_.enter(phase);
  }
  void beat() noexcept { watchdog_.beat(); }
  /// The last lines on stdout if a stall or a signal ends this process during a call.
  void set_last_words(std::string words) { watchdog_.set_last_words(std::move(words)); }
  /// Takes them back; empty if they were already printed.
  [[nodiscard]] std::string withdraw_last_words() { return watchdog_.withdraw_last_words(); }
  [[nodiscard]] std::optional<std::size_t> take_wrong(std::size_t n_elements) {
    return drill_ != nullptr ? drill_->take_wrong(n_elements) : std::nullopt;
  }
  void slow_down(core::Seconds time) const {
    if (drill_ != nullptr) drill_->slow_down(runtime::name(phase_), time);
  }
  [[nodiscard]] double drilled_distance(double measured_ns) {
    return drill_ != nullptr ? drill_->distance(measured_ns) : measured_ns;
  }
  [[nodiscard]] runtime::Activity phase() const noexcept { return phase_; }

 private:
  runtime::Watchdog& watchdog_;
  runtime::Drill* drill_;
  runtime::Activity phase_ = runtime::Activity::init;
};

}  // namespace lockstep::reduce_all

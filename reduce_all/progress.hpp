// Where this process is, for whoever watches it.
// Invariant: one call per step, so that the watchdog and a drill never disagree about the phase.
// Used by main(), the run, the sweep and the measuring loop.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "reduce_all/inject.hpp"
#include "runtime/watch/watchdog.hpp"

namespace lockstep::reduce_all {

/// Where this process is, told to the watchdog and to the drill in one call.
class Progress {
 public:
  Progress(runtime::Watchdog& watchdog, std::optional<Injection> injection, int rank)
      : watchdog_{watchdog}, drill_{injection}, rank_{rank} {}

  void set_rank(int rank, int n_ranks) {
    rank_ = rank;
    watchdog_.set_rank(rank, n_ranks);
  }
  void enter(runtime::Activity phase) {
    phase_ = phase;
    watchdog_.enter(phase);
    drill_.enter(phase, rank_);
  }
  void beat() noexcept { watchdog_.beat(); }
  /// What stdout still gets if a stall or a signal ends this process in mid-call.
  void set_last_words(std::string words) { watchdog_.set_last_words(std::move(words)); }
  /// Takes them back: empty if they are out.
  [[nodiscard]] std::string withdraw_last_words() { return watchdog_.withdraw_last_words(); }
  [[nodiscard]] std::optional<std::size_t> take_wrong(std::size_t n_elements) {
    return drill_.take_wrong(n_elements, rank_);
  }
  void slow_down(const core::Stopwatch& watch) const noexcept { drill_.slow_down(watch, rank_); }
  [[nodiscard]] double drilled_distance(double measured_ns) { return drill_.distance(measured_ns); }
  [[nodiscard]] runtime::Activity phase() const noexcept { return phase_; }

 private:
  runtime::Watchdog& watchdog_;
  Drill drill_;
  int rank_;
  runtime::Activity phase_ = runtime::Activity::init;
};

}  // namespace lockstep::reduce_all

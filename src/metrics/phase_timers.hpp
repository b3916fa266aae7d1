// The time of one rank by phase.
// Invariant: at any moment exactly one phase runs, so the phases add up to the time since construction; `other` is the
// rest.
// Used by the trainer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

#include "core/units.hpp"

namespace lockstep::metrics {

enum class Phase : std::uint8_t {
  data_wait,  ///< for the next batch
  forward,
  backward,
  communication,  ///< exposed: waiting for other ranks with nothing to compute
  optimizer,
  device,      ///< waiting for a device that computes, while the host has nothing to enqueue
  evaluation,  ///< including everything inside
  save,        ///< including everything inside
  other
};

inline constexpr std::array<Phase, 9> all_phases{Phase::data_wait,     Phase::forward,   Phase::backward,
                                                 Phase::communication, Phase::optimizer, Phase::device,
                                                 Phase::evaluation,    Phase::save,      Phase::other};

[[nodiscard]] std::string_view name(Phase phase) noexcept;

/// Seconds by phase.
struct PhaseTimes {
  std::array<double, all_phases.size()> seconds{};

  [[nodiscard]] double operator[](Phase phase) const noexcept { return seconds[static_cast<std::size_t>(phase)]; }
  [[nodiscard]] double& operator[](Phase phase) noexcept { return seconds[static_cast<std::size_t>(phase)]; }
  PhaseTimes& operator+=(const PhaseTimes& more) noexcept;
  PhaseTimes& operator-=(const PhaseTimes& less) noexcept;
  [[nodiscard]] core::Seconds total() const noexcept;
  /// Phases that belong to training steps: all except evaluation and save.
  [[nodiscard]] core::Seconds of_steps() const noexcept;
};

/// Costs one clock reading per begin() and end(), and no memory. For one thread.
class PhaseTimers {
 public:
  /// Starts with the phase `other`.
  PhaseTimers() noexcept;

  /// `phase` interrupts the running one, until its end(). Inside evaluation and save, all phases count as these.
  void begin(Phase phase);
  void end();

  /// Calls `at_end`, which must not throw, whenever a phase ends, with the time of the phase without interruptions. The
  /// call itself counts as this phase. Phases within evaluation and save cause no call.
  void set_at_end(std::function<void(Phase phase, core::Seconds time)> at_end) { at_end_ = std::move(at_end); }

  /// Calls end() at the end of a block.
  class Scope {
   public:
    Scope(PhaseTimers& timers, Phase phase) : timers_{timers} { timers_.begin(phase); }
    ~Scope() { timers_.switch_back(); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    PhaseTimers& timers_;
  };

  /// Moves `time` from `from` to `to`, but at most what `from` got since the last lap(). For time whose phase is known
  /// only afterwards.
  void reassign(Phase from, Phase to, core::Seconds time) noexcept;

  /// Returns the times since construction.
  [[nodiscard]] PhaseTimes sums() noexcept;
  /// The times since the last lap(), or construction: one training step, if called at the end of each.
  [[nodiscard]] PhaseTimes lap() noexcept;

 private:
  void account() noexcept;
  void switch_back() noexcept;

  static constexpr std::size_t most_nested = 8;
  struct Running {
    Phase phase = Phase::other;
    double sum_at_begin_s = 0;  ///< the sum of this phase
  };
  std::array<Running, most_nested> running_{};  ///< the last one runs, those before it are interrupted
  std::size_t n_running_ = 1;
  std::function<void(Phase phase, core::Seconds time)> at_end_{};
  double since_s_;
  PhaseTimes sums_{};
  PhaseTimes at_last_lap_{};
};

}  // namespace lockstep::metrics

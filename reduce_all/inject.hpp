// Fire drills: a stall, a wrong result, moving cores or a slow rank made on purpose, to prove that the alarms work.
// Invariant: without --inject nothing here has an effect; with it a stall or a wrong result happens exactly once.
// Used by main(), the measuring loop and the fault tests.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "core/timer.hpp"
#include "runtime/watch/watchdog.hpp"

namespace lockstep::reduce_all {

/// `stop:RANK:PHASE`, `wrong:RANK[:INDEX]`, `move:LOOKS` or `slow:RANK:PERCENT`.
struct Injection {
  enum class Kind { stop, wrong, move, slow };
  Kind kind = Kind::stop;
  int rank = 0;
  runtime::Activity phase = runtime::Activity::init;  ///< stop: on entering it
  std::size_t index = 0;  ///< wrong: element of that rank's output; move: looks between moves; slow: percent
};

/// Throws core::Error (usage) if `text` has none of these forms.
[[nodiscard]] Injection parse_injection(std::string_view text);

/// One process's part in a drill. A drill for another rank does nothing.
class Drill {
 public:
  explicit Drill(std::optional<Injection> injection) : pending_{injection} {}

  /// Stops this process by SIGSTOP if the drill says so. `rank` may still be a guess of the launcher's.
  void enter(runtime::Activity phase, int rank);
  /// The element of which a bit is to be flipped, if the drill says so and an output of so many has it.
  [[nodiscard]] std::optional<std::size_t> take_wrong(std::size_t n_elements, int rank);
  /// What a look at the cores' distance finds, in ns: if the drill says so, 100 for so many looks, then 400 for as
  /// many, and so on, on every rank.
  [[nodiscard]] double distance(double measured_ns);
  /// Spins until `watch` shows so many percent more, if the drill says so: what was timed then takes that much longer.
  void slow_down(const core::Stopwatch& watch, int rank) const noexcept;

 private:
  std::optional<Injection> pending_;
  std::size_t n_looks_ = 0;
};

}  // namespace lockstep::reduce_all

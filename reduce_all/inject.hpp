// Fire drills: a stall or a wrong result made on purpose, to prove that the alarms work.
// Invariant: without --inject nothing here has an effect; with it the fault happens exactly once.
// Used by main(), the measuring loop and the fault tests.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "runtime/watchdog.hpp"

namespace lockstep::reduce_all {

/// `stop:RANK:PHASE` or `wrong:RANK[:INDEX]`.
struct Injection {
  enum class Kind { stop, wrong };
  Kind kind = Kind::stop;
  int rank = 0;
  runtime::Phase phase = runtime::Phase::init;  ///< stop: on entering it
  std::size_t index = 0;                        ///< wrong: element of that rank's output
};

/// Throws core::Error (usage) if `text` is neither form.
[[nodiscard]] Injection parse_injection(std::string_view text);

/// One process's part in a drill. A drill for another rank does nothing.
class Drill {
 public:
  explicit Drill(std::optional<Injection> injection) : pending_{injection} {}

  /// Stops this process by SIGSTOP if the drill says so. `rank` may still be a guess of the launcher's.
  void enter(runtime::Phase phase, int rank);
  /// Flips a bit of the element if the drill says so and `output` has it.
  void corrupt(std::span<std::byte> output, std::size_t element_size, int rank);

 private:
  std::optional<Injection> pending_;
};

}  // namespace lockstep::reduce_all

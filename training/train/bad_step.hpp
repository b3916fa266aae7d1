// A step whose loss or gradient was not finite, as kept in a checkpoint of the state before it.
// Invariant: with that state, the recipe and the set, it is all that --replay needs to repeat the step.
// Used by the trainer, which keeps it, and by `lockstep train --replay`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::training {

/// What one rank saw.
struct Sighting {
  int rank = 0;
  std::string host{};
  std::string where{};  ///< as Learner::NotFinite has it, as are samples
  std::vector<std::uint64_t> samples{};
};

struct BadStep {
  double learning_rate = 0;
  std::vector<Sighting> seen{};  ///< by rank
};

/// The text of a JSON object.
[[nodiscard]] std::string to_json(const BadStep& bad);
/// Throws core::Error (usage) naming the field if the text does not come from to_json().
[[nodiscard]] BadStep parse_bad_step(std::string_view text);

}  // namespace lockstep::training

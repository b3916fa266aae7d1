// Translates a recipe into the types of src/.
// Invariant: pure; the recipe is resolved.
// Used by `lockstep train`.
#pragma once

#include <cstdint>
#include <optional>

#include "data/load/loader.hpp"
#include "data/synth/synth.hpp"
#include "optim/schedule.hpp"
#include "training/recipe/goal.hpp"
#include "training/recipe/recipe.hpp"

namespace lockstep::training {

/// Samples of the whole training, with `n_epoch_samples` per epoch; ignores max_steps.
[[nodiscard]] std::uint64_t total_samples(const Recipe& recipe, std::uint64_t n_epoch_samples) noexcept;
/// Where training ends, with epochs of `n_batches` batches: after a whole epoch, or at max_steps if that comes first.
[[nodiscard]] Goal goal_of(const Recipe& recipe, std::uint64_t n_epoch_samples, std::uint64_t n_batches) noexcept;
/// The root of a loss that is a mean squared error, in the unit of the targets; nothing for any other loss.
[[nodiscard]] std::optional<double> rmse_of(const Recipe& recipe, double loss) noexcept;

/// Whether rates depend on where training ends.
[[nodiscard]] constexpr bool has_end(optim::ScheduleKind schedule) noexcept {
  return schedule == optim::ScheduleKind::cosine || schedule == optim::ScheduleKind::polynomial;
}
[[nodiscard]] optim::ScheduleSpec schedule_spec(const Recipe& recipe, std::uint64_t n_epoch_samples);

[[nodiscard]] data::LoaderOptions loader_options(const Recipe& recipe, bool is_evaluation, int n_ranks);

/// The synthetic set: the kind that fits the model, and its options.
[[nodiscard]] const data::Synthesizer& synthesizer_of(const Recipe& recipe);
[[nodiscard]] data::SynthOptions synth_options(const Recipe& recipe) noexcept;

}  // namespace lockstep::training

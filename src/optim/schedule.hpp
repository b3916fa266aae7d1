// Learning rates as functions of samples seen.
// Invariant: pure; ranks, steps and the batch size are not inputs, so a run's rates do not depend on its distribution.
// Used by the trainer's loop and recipe.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace lockstep::optim {

/// Enumerators equal the words of the recipe.
enum class ScheduleKind { constant, step, multistep, cosine, polynomial };

inline constexpr std::array<ScheduleKind, 5> all_schedule_kinds{ScheduleKind::constant, ScheduleKind::step,
                                                                ScheduleKind::multistep, ScheduleKind::cosine,
                                                                ScheduleKind::polynomial};

[[nodiscard]] std::string_view name(ScheduleKind kind) noexcept;

/// Each kind ignores the members that it does not use.
struct ScheduleSpec {
  ScheduleKind kind = ScheduleKind::constant;
  double lr = 1e-3;                         ///< after the warm-up, before any decay
  std::uint64_t warmup_samples = 0;         ///< any kind: the rate rises linearly until then ...
  double warmup_factor = 0.01;              ///< ... from this fraction of it
  double gamma = 0.1;                       ///< step, multistep: the factor of each decay
  std::uint64_t step_samples = 0;           ///< step: samples between decays
  std::vector<std::uint64_t> milestones{};  ///< multistep: samples seen at each decay, ascending
  std::uint64_t total_samples = 0;          ///< cosine, polynomial: from here on the rate is min_lr
  double min_lr = 0;                        ///< cosine, polynomial
  double power = 1;                         ///< polynomial
};

/// Throws core::Error (usage) naming the key in kebab case (`total-samples`) and the expected range.
void check(const ScheduleSpec& spec);

/// The rate of the step that begins after `samples_seen` samples. `spec` has passed check(). step and multistep count
/// samples from the start of training. The warm-up multiplies them, as in PyTorch's ChainedScheduler of LinearLR and
/// StepLR or MultiStepLR. cosine and polynomial begin when the warm-up ends, as in its SequentialLR of LinearLR and
/// CosineAnnealingLR or PolynomialLR.
[[nodiscard]] double learning_rate(const ScheduleSpec& spec, std::uint64_t samples_seen) noexcept;

}  // namespace lockstep::optim

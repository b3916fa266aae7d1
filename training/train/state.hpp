// The changing state of a run, besides parameters, statistics and the optimizer's state.
// Invariant: plain values, the same on all ranks: the position of a run, and the facts of its epoch.
// Used by the trainer, and by its checkpoints, which keep them.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "optim/loss_scale.hpp"
#include "parallel/control_word.hpp"
#include "training/run/record.hpp"

namespace lockstep::training {

/// Sums over the agreed steps of an epoch, or of an interval.
struct AgreedSums {
  double loss = 0;
  std::uint64_t n_samples = 0;
  std::uint64_t n_top1 = 0;
  std::uint64_t n_steps = 0;

  void add(const parallel::StepAgreement& step) noexcept {
    loss += step.loss;
    n_samples += step.n;
    n_top1 += step.n_top1;
    ++n_steps;
  }
  [[nodiscard]] double mean_loss() const noexcept { return mean(loss, n_samples); }
  [[nodiscard]] double top1_percent() const noexcept { return 100 * mean(static_cast<double>(n_top1), n_samples); }
};

/// The best evaluation: by correct answers, then by loss.
struct BestEvaluation {
  std::uint64_t n_steps = 0;  ///< number of steps before it
  std::uint64_t n_samples = 0;
  std::uint64_t n_top1 = 0;
  double loss = 0;
};

struct RunState {
  std::uint64_t epoch = 0;         ///< counting from 0
  std::uint64_t n_steps = 0;       ///< made
  std::uint64_t samples_seen = 0;  ///< in these steps
  double learning_rate = 0;        ///< of the last step
  std::uint64_t n_agreed = 0;      ///< steps whose loss all ranks know
  std::uint64_t ledger = 0;        ///< of the samples of this epoch, at the last agreement of the ranks
  std::array<double, 4>
      rates{};  ///< learning rates of the last steps, by their number; some steps are not agreed on yet
  AgreedSums of_epoch{};
  double epoch_loss = std::numeric_limits<double>::quiet_NaN();  ///< mean, of the last whole epoch
  std::string losses{};                                          ///< the agreed ones, as bytes: see add_loss()
  std::optional<EvaluationRecord> evaluation{};                  ///< the last one; a resumed run makes a new one
  std::optional<optim::LossScale> loss_scale{};                  ///< from a checkpoint; otherwise the device has it
  std::optional<BestEvaluation> best{};                          ///< so far

  /// The rate of step `step` of the run, counting from 0, which must be one of the last.
  [[nodiscard]] double rate_of(std::uint64_t step) const noexcept { return rates[step % rates.size()]; }
  /// Adds an agreed loss. Once there are 4,096, their digest replaces them before the next is added.
  void add_loss(double loss);
  /// The same for a resumed and an uninterrupted run.
  [[nodiscard]] std::string digest_of_losses() const;
  /// Makes it the best, if it is better, or if the best had other samples. One with a NaN loss never is the best.
  void note_evaluation(const EvaluationRecord& evaluated) noexcept;
  void begin_next_epoch() noexcept {
    ++epoch;
    ledger = 0;
    of_epoch = {};
  }
};

/// The text of a JSON object. All steps are agreed on, so the rates of the last ones are not stored.
[[nodiscard]] std::string to_json(const RunState& state);
/// Throws core::Error (usage) naming the field if the text does not come from to_json().
[[nodiscard]] RunState parse_run_state(std::string_view text);

}  // namespace lockstep::training

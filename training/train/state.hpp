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

/// The best evaluation: by right answers, then by loss.
struct BestEvaluation {
  std::uint64_t n_steps = 0;  ///< after these
  std::uint64_t n_samples = 0;
  std::uint64_t n_top1 = 0;
  double loss = 0;
};

struct RunState {
  std::uint64_t epoch = 0;         ///< counting from 0
  std::uint64_t n_steps = 0;       ///< made
  std::uint64_t samples_seen = 0;  ///< in these
  double learning_rate = 0;        ///< of the step made last
  std::uint64_t n_agreed = 0;      ///< steps that all ranks know the loss of
  std::uint64_t ledger = 0;        ///< of the samples of this epoch, when the ranks agreed on it last
  std::array<double, 4>
      rates{};  ///< learning rates of the last steps, by their number; some of them are not agreed yet
  AgreedSums of_epoch{};
  double epoch_loss = std::numeric_limits<double>::quiet_NaN();  ///< mean, of the last whole epoch
  std::string losses{};                                          ///< the agreed ones, as bytes: see add_loss()
  std::optional<EvaluationRecord> evaluation{};                  ///< the last; of a run that goes on there will be one
  std::optional<optim::LossScale> loss_scale{};                  ///< of a checkpoint; else the device has it
  std::optional<BestEvaluation> best{};                          ///< of all so far

  /// The rate of step `step` of the run, counting from 0: one of the last.
  [[nodiscard]] double rate_of(std::uint64_t step) const noexcept { return rates[step % rates.size()]; }
  /// Adds an agreed loss. When there are 4,096, their digest replaces them before the next.
  void add_loss(double loss);
  /// The same for a resumed and an uninterrupted run.
  [[nodiscard]] std::string digest_of_losses() const;
  /// With other samples than the best so far it is the best. One whose loss is NaN never is.
  void note_evaluation(const EvaluationRecord& evaluated) noexcept;
  void begin_next_epoch() noexcept {
    ++epoch;
    ledger = 0;
    of_epoch = {};
  }
};

/// The text of a JSON object. All steps are agreed on: so the rates of the last ones need not be kept.
[[nodiscard]] std::string to_json(const RunState& state);
/// Throws core::Error (usage) naming the field if the text does not come from to_json().
[[nodiscard]] RunState parse_run_state(std::string_view text);

}  // namespace lockstep::training

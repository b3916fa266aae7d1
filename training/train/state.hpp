// What of a run changes from step to step, beside parameters, statistics and the optimizer's state.
// Invariant: plain values, the same on all ranks: where a run stands, and what is known of its epoch.
// Used by the trainer.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>

#include "io/digest.hpp"
#include "parallel/control_word.hpp"
#include "training/run/record.hpp"

namespace lockstep::training {

/// Sums over what all ranks know of the steps of an epoch, or of an interval.
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

struct RunState {
  std::uint64_t epoch = 0;         ///< counting from 0
  std::uint64_t n_steps = 0;       ///< made
  std::uint64_t samples_seen = 0;  ///< in these
  double learning_rate = 0;        ///< of the step made last
  std::uint64_t n_agreed = 0;      ///< steps that all ranks know the loss of
  std::array<double, 4>
      rates{};  ///< learning rates of the last steps, by their number; some of them are not agreed yet
  AgreedSums of_epoch{};
  double epoch_loss = std::numeric_limits<double>::quiet_NaN();  ///< mean, of the last whole epoch
  io::Digest losses{};                                           ///< of all agreed ones in order
  std::optional<EvaluationRecord> evaluation{};                  ///< the last
};

}  // namespace lockstep::training

// What a run shows on the terminal of rank 0.
// Invariant: progress goes to stderr, so stdout has only results.
// Used by training/run/run.
#pragma once

#include <string>

#include "core/clock.hpp"
#include "core/print.hpp"
#include "training/run/observer.hpp"

namespace lockstep::training {

/// Shows progress in place on a terminal, and one line each elsewhere.
class ProgressDisplay {
 public:
  ProgressDisplay();
  /// Clears the terminal's line for other output.
  ~ProgressDisplay();
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  /// Prints a line that the next one may replace.
  void update(const std::string& line);
  /// Prints a line that stays.
  void print(const std::string& line);
  void clear();

 private:
  bool is_terminal_;
  bool has_line_ = false;
};

class Display final : public Observer {
 public:
  /// `is_evaluation`: the run only evaluates, and the evaluation is the result. `printer` and `clock` must outlive it.
  Display(const Goal& goal, std::string folder, bool is_evaluation, core::Printer& printer,
          const core::Clock& clock = core::real_clock());

  void started(const StartRecord& record) override;
  void first_step_made(const Position& at) override;
  void interval_over(const TrainRecord& record) override;
  void epoch_forecast(const ForecastRecord& record) override;
  void epoch_trained(const EpochRecord& record) override;
  void evaluating(const Position& at, double share) override;
  void evaluated(const EvaluationRecord& record) override;
  void saved(const SaveRecord& record) override;
  void ended(const FinalRecord& record) override;

 private:
  Goal goal_;
  std::string folder_;
  bool is_evaluation_;
  core::Printer& printer_;
  ProgressDisplay display_{};
  core::Timer since_told_;
};

}  // namespace lockstep::training

// Observers of a run: they show it, record it, or measure it.
// Invariant: observers do not change the training; observers with collective members exist on all ranks; records are
// complete on rank 0.
// Used by the trainer, which reports events; implemented in training/run.
#pragma once

#include "training/run/record.hpp"

namespace lockstep::training {

class Observer {
 public:
  virtual ~Observer() = default;

  /// Training begins.
  virtual void started(const StartRecord& /*record*/) {}
  /// The run returns to a checkpoint; what was learned since is lost.
  virtual void went_back(const ResumeRecord& /*record*/) {}
  virtual void epoch_begun(const Position& /*at*/) {}
  virtual void epoch_forecast(const ForecastRecord& /*record*/) {}
  /// The next step begins after `n_made` steps of the run.
  virtual void step_begun(std::uint64_t /*n_made*/) {}
  virtual void step_made(const StepWork& /*work*/) {}
  virtual void first_step_made(const Position& /*at*/) {}
  /// All ranks know the loss of a step.
  virtual void step_agreed(const StepRecord& /*record*/) {}
  virtual void interval_over(const TrainRecord& /*record*/) {}
  /// Collective: the epoch has no more steps.
  virtual void steps_over() {}
  virtual void epoch_trained(const EpochRecord& /*record*/) {}
  /// `share` of the samples for evaluation, from 0 to 1, is done.
  virtual void evaluating(const Position& /*at*/, double /*share*/) {}
  virtual void evaluated(const EvaluationRecord& /*record*/) {}
  /// An epoch was trained, and evaluated if that was due.
  virtual void epoch_over(const EpochRecord& /*record*/) {}
  virtual void saved(const SaveRecord& /*record*/) {}
  /// After every step and every batch of an evaluation.
  virtual void working(const Position& /*at*/) {}
  /// Adds to the final record what only the observer knows.
  virtual void ending(FinalRecord& /*record*/) {}
  virtual void ended(const FinalRecord& /*record*/) {}
};

}  // namespace lockstep::training

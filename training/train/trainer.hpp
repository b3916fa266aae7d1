// The training loop: takes batches, makes steps, and evaluates and saves in between.
// Invariant: all ranks make the same steps and take the same branches, by the control word. They react to a stop one
// step late and to a loss two steps late, so no step waits for the host. The trainer reports to observers and does not
// know them.
// Used by `lockstep train`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "metrics/phase_timers.hpp"
#include "metrics/step_statistics.hpp"
#include "parallel/control_word.hpp"
#include "runtime/session.hpp"
#include "runtime/topology.hpp"
#include "runtime/watch/watchdog.hpp"
#include "training/run/run.hpp"
#include "training/train/divergence.hpp"
#include "training/train/interval.hpp"
#include "training/train/open_device.hpp"
#include "training/train/resume.hpp"
#include "training/train/saver.hpp"
#include "training/train/setup.hpp"
#include "training/train/state.hpp"
#include "training/train/time_limit.hpp"

namespace lockstep::training {

class Trainer {
 public:
  /// Collective. Decides the strategy if the recipe says `auto`. Throws core::Error (usage), the same on all ranks or
  /// on rank 0 only, for anything wrong with recipe, data and files, before any step is made.
  Trainer(const runtime::Session& session, const OpenDevice& device, ResolvedRecipe& resolved,
          const RunOptions& options, runtime::Watchdog& watchdog);

  /// Collective: returns the exit code. If one rank fails while others are within a step, ranks do not agree on the
  /// error: runtime::abort_job() ends the job.
  int run();
  /// Collective: instead of run(): prints the needs of the run; returns the exit code.
  int describe();

 private:
  /// How the run ends.
  struct Ending {
    RunStatus status = RunStatus::finished;
    std::string message{};
    int exit_code = 0;
  };

  void note_progress();
  void start_drill();
  void resume();
  void go_on_from(const checkpoint::Checkpoint& from);
  void train();
  bool train_epoch();
  bool step(const data::Batch& batch);
  bool end_steps(bool goes_on);
  bool settle(bool goes_on);
  void count(const data::Batch& batch);
  void note_loss(const parallel::StepAgreement& agreement);
  bool account(const std::optional<parallel::StepAgreement>& agreement);
  void check_coverage() const;
  void tell_step();
  void tell_forecast();
  void tell_interval();
  [[nodiscard]] EpochRecord epoch_record(const Position& begin) const;
  void end_epoch(EpochRecord record, bool is_last);
  void evaluate();
  [[nodiscard]] EvaluationRecord evaluation_record(const nn::LossSums& sums, core::Seconds time) const;
  void save_last();
  void save_in_between();
  [[nodiscard]] bool is_stop_asked() const;
  void stop();
  void keep_bad_step();
  bool roll_back();
  void fail_once(const core::Error& error);
  [[nodiscard]] FinalRecord final_record();
  void finish();
  [[nodiscard]] Position position() const;
  [[nodiscard]] Snapshot snapshot() const;
  [[nodiscard]] int exit_code() const;

  const core::Clock& clock_;
  core::Timer watch_;  ///< includes the setup
  TimeLimit limit_;    ///< on rank 0
  const runtime::Session& session_;
  const runtime::Communicator& world_;
  const Recipe& recipe_;
  const RunOptions& options_;
  nn::Device& device_;
  runtime::Watchdog& watchdog_;
  runtime::Topology topology_;
  const runtime::DeviceChoice& choice_;
  Run run_;
  bool is_setting_up_ = true;
  metrics::PhaseTimers timers_{};
  Setup setup_;
  Learner& learner_;
  parallel::ControlWord control_;
  Interval interval_;
  metrics::StepStatistics steady_{warmup_steps};
  RunState state_{};
  std::optional<UseRecord> forecast_{};  ///< nothing if the run does not train
  std::optional<ResumeRecord> resumed_{};
  std::vector<Change> changes_{};  ///< since the checkpoint that was resumed, if they change bits
  Epochs epochs_{};
  Saver saver_;
  Divergence divergence_;
  std::uint64_t ledger_before_ = 0;  ///< of the samples that the epoch had seen when the run was resumed
  core::Seconds epoch_time_{};       ///< of the last whole one, with evaluation and saving; 0: unknown
  bool is_epoch_over_ = false;       ///< trained and evaluated
  bool has_stepped_ = false;         ///< in this process
  Ending ending_{};
};

}  // namespace lockstep::training

// The training loop: takes batches, makes steps, and evaluates and saves in between.
// Invariant: all ranks make the same steps and take the same branches, by the control word. They react to a stop one
// step late and to a loss two steps late, so no step waits for the host. The trainer reports to observers and does not
// know them.
// Used by `lockstep train`.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <set>
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
#include "training/train/interval.hpp"
#include "training/train/open_device.hpp"
#include "training/train/resume.hpp"
#include "training/train/setup.hpp"
#include "training/train/state.hpp"
#include "training/train/time_limit.hpp"

namespace lockstep::training {

class Trainer {
 public:
  /// Collective. Throws core::Error (usage), the same on all ranks or on rank 0 only, for anything wrong with recipe,
  /// data and files, before any step is made.
  Trainer(const runtime::Session& session, const OpenDevice& device, const ResolvedRecipe& resolved,
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

  /// A checkpoint that is being written.
  struct Saving {
    SaveRecord record{};
    std::vector<std::string> names{};
    core::Timer watch;
    std::unique_ptr<checkpoint::BackgroundSave> writer{};  ///< if it is in the background
  };

  void note_progress();
  void start_drill();
  void flip_bits();
  void resume();
  void require_ledger(const checkpoint::Checkpoint& from);
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
  [[nodiscard]] bool saves_checkpoints() const noexcept;
  [[nodiscard]] bool saves_in_between() const noexcept;
  [[nodiscard]] RunState kept_state() const;
  [[nodiscard]] std::string content_to_save(RunState kept, const BadStep* bad = nullptr);
  [[nodiscard]] std::vector<std::string> names_of(const RunState& kept) const;
  [[nodiscard]] bool is_save_due() const noexcept;
  void save_last();
  [[nodiscard]] core::Seconds time_for_disk() const;
  [[nodiscard]] Saving begin_save(bool is_due);
  void end_save(Saving& saving);
  std::optional<core::Error> while_standing(Saving& saving, const std::function<void()>& work);
  std::optional<core::Error> save_now(bool is_due);
  void save_in_between();
  void advance_save();
  void finish_save();
  [[nodiscard]] bool fails_for_place();
  void tell_unsaved(const Saving& saving, const core::Error& why) const;
  void save_weights() const;
  [[nodiscard]] std::string checkpoint_path() const;
  [[nodiscard]] bool is_stop_asked() const;
  void stop();
  void fail_not_finite(const parallel::StepAgreement& agreement);
  void keep_bad_step();
  void note_divergence(const parallel::StepAgreement& agreement);
  [[nodiscard]] std::uint64_t least_sound_steps() const;
  bool roll_back();
  void fail_once(const core::Error& error);
  [[nodiscard]] FinalRecord final_record();
  void finish();
  [[nodiscard]] Position position() const;
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
  std::optional<ResumeRecord> resumed_{};
  std::vector<Change> changes_{};  ///< since the checkpoint that was resumed, if they change bits
  Epochs epochs_{};
  std::uint64_t ledger_before_ = 0;             ///< of the samples that the epoch had seen when the run was resumed
  std::uint64_t saved_at_ = 0;                  ///< samples seen when the last checkpoint was begun or resumed
  std::uint64_t kept_at_ = 0;                   ///< samples seen when the last complete one was begun
  std::optional<Saving> saving_{};              ///< in the background
  std::set<std::string> left_alone_{};          ///< reported as not our checkpoints
  core::Timer since_saved_;                     ///< on rank 0, since the begin of the last save
  bool is_save_asked_ = false;                  ///< by rank 0's clock, and agreed on
  core::Seconds epoch_time_{};                  ///< of the last whole one, with evaluation and saving; 0: unknown
  bool is_kept_here_ = false;                   ///< in the folder of this run
  bool is_epoch_over_ = false;                  ///< trained and evaluated
  bool is_name_due_ = false;                    ///< for the present state, which no checkpoint has yet
  bool is_place_lost_ = false;                  ///< of the run's folder: reported, and nothing more is written
  bool is_step_bad_ = false;                    ///< the step after state_.n_agreed
  std::optional<core::Error> divergence_{};     ///< of parameters, not handled yet
  std::optional<std::uint64_t> diverged_at_{};  ///< step after which it was last found
  bool has_stepped_ = false;                    ///< in this process
  Ending ending_{};
};

}  // namespace lockstep::training

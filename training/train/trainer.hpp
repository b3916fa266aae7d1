// The training loop: batches in, steps made, progress told, evaluated and saved in between.
// Invariant: all ranks make the same steps and take the same branches, by the control word; stop and loss are acted on
// one step late, so no step waits for the host.
// Used by `lockstep train`.
#pragma once

#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/transport.hpp"
#include "core/print.hpp"
#include "core/timer.hpp"
#include "io/digest.hpp"
#include "metrics/phase_timers.hpp"
#include "metrics/step_statistics.hpp"
#include "optim/schedule.hpp"
#include "parallel/control_word.hpp"
#include "runtime/session.hpp"
#include "runtime/topology.hpp"
#include "runtime/watch/watchdog.hpp"
#include "training/run/compat.hpp"
#include "training/run/directory.hpp"
#include "training/run/profile.hpp"
#include "training/run/text.hpp"
#include "training/train/batches.hpp"
#include "training/train/learner.hpp"

namespace lockstep::training {

/// What the command line asks for beside the recipe.
struct TrainOptions {
  std::vector<std::string> arguments{};  ///< of the program, for run.json
  std::string run_dir{};
  std::string init_from{};
  std::string save_weights{};  ///< empty: weights.h5 in the run directory
  bool compat = false;
  bool digest = false;
  bool evaluate_only = false;
  bool profile = false;
  bool dry_run = false;
};

class Trainer {
 public:
  /// Collective. Throws core::Error (usage), the same on all ranks or on rank 0 only, for whatever is wrong with recipe,
  /// data and files before any step is made.
  Trainer(const runtime::Session& session, const ResolvedRecipe& resolved, const TrainOptions& options,
          runtime::Watchdog& watchdog);

  /// Collective: the exit code.
  int run();
  /// Collective: instead of run(), what it would need; the exit code.
  int describe();

 private:
  bool step(const Samples& samples);
  bool account(const std::optional<parallel::StepAgreement>& agreement);
  void claim_outputs();
  [[nodiscard]] nn::Network fitting_network(const DataInfo& info, std::uint64_t most) const;
  void plan_training();
  void check_coverage(const std::optional<parallel::StepAgreement>& last) const;
  void stop_for_signal();
  bool train_epoch();
  void end_epoch(bool is_last);
  void evaluate();
  void save(bool is_due);
  void save_file() const;
  void train_epochs();
  void share_status();
  void keep_alive();
  void tell_failure(const std::exception& error) const;
  [[nodiscard]] bool is_save_due() const noexcept;
  void plan_report(double step_s, double most_steps);
  void tell_first_step();
  void report_progress();
  void tell_epoch();
  void tell_evaluation(std::uint64_t n_batches, core::Stopwatch& since_told);
  void finish();
  int fail_not_finite(const parallel::NotFinite& found);
  void tell_start();
  [[nodiscard]] Position position() const;
  [[nodiscard]] bool is_lead() const noexcept { return world_.rank() == 0; }
  [[nodiscard]] std::string weights_path() const;
  [[nodiscard]] int exit_code() const;

  static constexpr std::uint64_t n_warmup_steps = 5;

  const runtime::Session& session_;
  const runtime::Communicator& world_;
  const ResolvedRecipe& resolved_;
  const Recipe& recipe_;
  const TrainOptions& options_;
  runtime::Watchdog& watchdog_;
  runtime::Topology topology_;
  std::unique_ptr<comm::Transport> transport_;
  std::unique_ptr<Batches> batches_;  ///< none if the run only evaluates
  std::unique_ptr<Batches> evaluation_batches_;
  std::unique_ptr<Learner> learner_;
  std::unique_ptr<parallel::ControlWord> control_;
  std::optional<Profiler> profiler_{};
  optim::ScheduleSpec schedule_{};
  Goal goal_{};

  std::string status_path_{};                   // of all ranks: rank 0's status.json; empty without one
  std::unique_ptr<RunDirectory> directory_{};   // rank 0
  std::unique_ptr<ProgressDisplay> display_{};  // rank 0
  const CompatStyle* compat_ = nullptr;         // rank 0
  CompatRun compat_run_{};
  CompatEpoch compat_epoch_{};
  CompatEnd compat_end_{};

  core::Stopwatch watch_{};
  metrics::PhaseTimers timers_{};
  metrics::StepStatistics interval_;
  metrics::StepStatistics steady_;
  std::uint64_t epoch_ = 0;
  std::uint64_t n_steps_ = 0;
  std::uint64_t n_epoch_agreed_ = 0;  ///< steps of the epoch whose loss is known
  std::uint64_t samples_seen_ = 0;
  std::uint64_t next_report_ = 0;
  std::uint64_t first_epoch_ = 1;  ///< of the interval
  double loss_sum_ = 0;            ///< of the interval
  std::uint64_t n_loss_ = 0;
  double epoch_loss_ = 0;  ///< of the epoch
  std::uint64_t n_epoch_loss_ = 0, n_epoch_top1_ = 0;
  double last_loss_ = std::numeric_limits<double>::quiet_NaN();  ///< of the last epoch
  double last_lr_ = 0;
  double agreed_lr_ = 0;        ///< of the step that ranks agreed on last
  std::uint64_t n_agreed_ = 0;  ///< steps
  io::Digest losses_{};
  std::optional<EvaluationRecord> evaluation_{};
  RunState state_ = RunState::finished;
  std::string message_{};
  int exit_code_ = 0;
  core::Printer printer_{};  // a full stdout is told at the end, when weights are saved
};

}  // namespace lockstep::training

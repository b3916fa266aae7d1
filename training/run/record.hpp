// What there is to tell about a run while it lasts and at its end, and its form in log.jsonl and status.json.
// Invariant: every number is of all ranks; every key carries its unit; what is not finite is null in JSON.
// Used by the trainer (which fills the records), train/run_directory (which keeps them) and train/run_text (which prints them).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/units.hpp"
#include "metrics/phase_report.hpp"
#include "metrics/step_statistics.hpp"

namespace lockstep::training {

enum class RunState { running, finished, stopped, failed };
[[nodiscard]] std::string_view name(RunState state) noexcept;

/// 0 of nothing.
[[nodiscard]] constexpr double mean(double sum, std::uint64_t n) noexcept {
  return n > 0 ? sum / static_cast<double>(n) : 0;
}

/// Where a run stands.
struct Position {
  std::uint64_t epoch = 0;  ///< counting from 1; 0: before the first
  std::uint64_t step = 0;   ///< optimizer steps made
  std::uint64_t samples_seen = 0;
  core::Seconds elapsed{};  ///< since training began
};

/// Where it is to end, by its length or a limit of steps, whichever comes first.
struct Goal {
  std::uint64_t n_epochs = 0;   ///< the last one may be in part
  std::uint64_t n_samples = 0;  ///< of all epochs together, in whole batches
  std::uint64_t n_steps = 0;
  bool is_within_epoch = false;  ///< the last one is in part
};

/// What is about to be trained, and where it goes.
struct StartRecord {
  std::string model{};
  std::uint64_t n_parameters = 0;
  std::string precision{};
  std::string data{};  ///< the set, or how samples are made
  std::uint64_t n_samples = 0;
  std::string shape{};             ///< of a sample as the model gets it
  std::uint64_t n_evaluation = 0;  ///< 0: nothing is evaluated
  std::uint64_t n_ranks = 1;
  int n_nodes = 1;
  std::uint64_t global_batch = 0;
  core::Bytes memory{};  ///< of this rank: activations, parameters and gradients
  std::string folder{};
};

/// One epoch of training, or what was made of it.
struct EpochRecord {
  Position at{};
  std::uint64_t n_samples = 0;
  double loss = 0;                       ///< mean over the samples
  std::optional<double> top1_percent{};  ///< of classes only
  core::Seconds time{};
};

/// One progress interval.
struct TrainRecord {
  Position at{};
  std::uint64_t first_epoch = 0;  ///< that the interval is of; 0: not known
  double loss = 0;                ///< mean over the samples of the interval
  std::optional<double> rmse{};   ///< its root, if it is a mean squared error
  double learning_rate = 0;
  double samples_per_s = 0;
  double step_ms_p50 = 0;
  double data_wait_ms = 0;      ///< of a step, mean over steps and ranks
  double communication_ms = 0;  ///< exposed; of a step, mean over steps and ranks
  std::optional<core::Seconds> eta{};
};

/// One pass over the evaluation split.
struct EvaluationRecord {
  Position at{};
  std::uint64_t n_samples = 0;
  double loss = 0;                       ///< mean over the samples
  std::optional<double> rmse{};          ///< its root, if it is a mean squared error
  std::optional<double> top1_percent{};  ///< of classes only
  std::optional<double> top5_percent{};
  core::Seconds time{};
};

/// What was read of a set in the whole run, for training and evaluation.
struct DataRecord {
  core::Bytes read{};  ///< as stored
  std::uint64_t n_chunks = 0;
  std::uint64_t n_crc_failures = 0;
  bool is_cached = false;          ///< all of it is in memory, once per node
  std::optional<double> mixing{};  ///< of order blocked: data::Sampler::mixing()
};

/// A run at its end.
struct FinalRecord {
  Position at{};
  bool is_within_epoch = false;  ///< the last one was not finished
  RunState state = RunState::finished;
  std::string message{};         ///< why it stopped or failed; empty if it finished
  double loss = 0;               ///< mean over the last epoch, or what there was of it; NaN without a step
  std::optional<double> rmse{};  ///< its root, if it is a mean squared error
  std::uint64_t n_ranks = 1;
  int n_nodes = 1;
  std::uint64_t global_batch = 0;
  std::uint64_t n_warmup_steps = 0;  ///< left out of `steady`
  std::optional<metrics::StepSummary> steady{};
  metrics::PhaseReport phases{};  ///< of the whole run
  std::optional<EvaluationRecord> evaluation{};
  std::optional<DataRecord> data{};  ///< nothing if samples were made on the spot
};

/// The rates of one interval, and the time left at its pace. `phases`: sums over the interval's steps.
[[nodiscard]] TrainRecord make_train_record(const Position& at, double loss, double learning_rate,
                                            const metrics::StepSummary& steps, const metrics::PhaseReport& phases,
                                            const Goal& goal);

// Lines of log.jsonl (share/schemas/train_log-1.schema.json), without their newline.
[[nodiscard]] std::string first_line(const std::string& started);
[[nodiscard]] std::string to_line(const TrainRecord& record);
[[nodiscard]] std::string to_line(const EvaluationRecord& record);
[[nodiscard]] std::string to_line(const FinalRecord& record);

/// status.json (share/schemas/train_status-1.schema.json).
struct Status {
  RunState state = RunState::running;
  std::string message{};
  Position at{};
  std::optional<double> loss{};
  std::optional<core::Seconds> eta{};
};
[[nodiscard]] std::string to_document(const Status& status, const std::string& updated);

}  // namespace lockstep::training

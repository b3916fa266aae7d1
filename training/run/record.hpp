// The records of a run, during it and at its end, and their form in log.jsonl and status.json.
// Invariant: every number covers all ranks; every key carries its unit; values that are not finite are null in JSON.
// Used by the trainer (which fills the records) and the observers of the run (which keep or show them).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.hpp"
#include "metrics/phase_report.hpp"
#include "metrics/step_statistics.hpp"
#include "training/recipe/goal.hpp"

namespace lockstep::training {

enum class RunStatus { running, finished, stopped, failed };
[[nodiscard]] std::string_view name(RunStatus status) noexcept;

/// 0 if `n` is 0.
[[nodiscard]] constexpr double mean(double sum, std::uint64_t n) noexcept {
  return n > 0 ? sum / static_cast<double>(n) : 0;
}

/// Steps of a run before the steady state: neither rates nor profiles count them.
inline constexpr std::uint64_t warmup_steps = 5;

/// The position of a run.
struct Position {
  std::uint64_t epoch = 0;  ///< counting from 1; 0: before the first
  std::uint64_t step = 0;   ///< optimizer steps made
  std::uint64_t samples_seen = 0;
  core::Seconds elapsed{};  ///< since training began
};

/// A run resumes or goes back.
struct ResumeRecord {
  Position at{};
  std::string from{};  ///< the checkpoint
  std::string why{};   ///< why it went back to the checkpoint; else empty
};

/// What will be trained, and where results are stored.
struct StartRecord {
  std::string model{};
  std::uint64_t n_parameters = 0;
  std::string precision{};
  std::string data{};  ///< the set, or the kind of synthetic samples
  std::uint64_t n_samples = 0;
  std::string shape{};             ///< of a sample as the model receives it
  std::uint64_t n_evaluation = 0;  ///< 0: no evaluation
  std::uint64_t n_ranks = 1;
  int n_nodes = 1;
  std::string device{};  ///< empty: a host, as expected
  std::string strategy{};
  std::string why_strategy{};  ///< empty if the recipe names it
  std::uint64_t global_batch = 0;
  core::Bytes memory{};           ///< of this rank: activations, parameters, gradients and the optimizer
  bool is_device_memory = false;  ///< otherwise the host's
  std::string folder{};
  std::uint64_t n_epochs = 0;
  std::uint64_t n_epoch_steps = 0;
  std::vector<std::string> hosts{};           ///< by rank
  std::vector<int> local_ranks{};             ///< by rank
  std::vector<std::uint64_t> rank_batches{};  ///< samples of a full batch, by rank
  std::optional<ResumeRecord> resumed{};
  std::string promise{};                     ///< whether a run resumed from this one's checkpoints has the same bits
  std::optional<core::Seconds> time_left{};  ///< until the run stops, if known
};

/// Whether an epoch ends before the run must stop.
struct ForecastRecord {
  std::uint64_t epoch = 0;  ///< counting from 1
  core::Seconds needed{};   ///< by the previous epoch's time
  core::Seconds left{};     ///< without the time for saving
  [[nodiscard]] bool fits() const noexcept { return needed <= left; }
};

/// This rank's work in a step.
struct StepWork {
  std::uint64_t n_samples = 0;
  std::uint64_t n_calls = 0;  ///< passes through the network
  core::Seconds time{};
};

/// A step that all ranks know of.
struct StepRecord {
  std::uint64_t epoch = 0;  ///< counting from 0, as is `step`
  std::uint64_t step = 0;   ///< of the epoch
  double loss = 0;          ///< mean over its samples
};

/// One progress interval.
struct TrainRecord {
  Position at{};
  std::uint64_t first_epoch = 0;  ///< of the interval; 0: unknown
  double loss = 0;                ///< mean over the samples of the interval
  std::optional<double> rmse{};   ///< the root of the loss, if it is a mean squared error
  double learning_rate = 0;
  double samples_per_s = 0;
  double step_ms_p50 = 0;
  double data_wait_ms = 0;      ///< of a step, mean over steps and ranks
  double communication_ms = 0;  ///< time without computation; per step, mean over steps and ranks
  std::optional<core::Seconds> eta{};
};

/// One pass over the evaluation split.
struct EvaluationRecord {
  Position at{};
  std::uint64_t n_samples = 0;
  double loss = 0;                       ///< mean over the samples
  std::optional<double> rmse{};          ///< the root of the loss, if it is a mean squared error
  std::optional<double> top1_percent{};  ///< of classes only
  std::optional<double> top5_percent{};
  std::uint64_t n_top1 = 0;  ///< correct answers
  core::Seconds time{};
};

/// One epoch of training, or a part of it.
struct EpochRecord {
  Position at{};
  std::uint64_t n_samples = 0;
  std::uint64_t n_steps = 0;
  double loss = 0;                       ///< mean over the samples
  std::optional<double> top1_percent{};  ///< of classes only
  double learning_rate = 0;              ///< of its last step
  core::Seconds time{};                  ///< of training, without evaluation
  double samples_per_s = 0;
  std::optional<EvaluationRecord> evaluation{};  ///< if there was one; it follows training
};

/// A checkpoint was written.
struct SaveRecord {
  Position at{};
  std::string path{};
  bool is_due = false;    ///< by the recipe's interval
  core::Seconds time{};   ///< from its begin until it is complete
  core::Seconds stall{};  ///< for which training paused
};

/// Data that the whole run has read from a set, for training and evaluation.
struct DataRecord {
  core::Bytes read{};  ///< as stored
  std::uint64_t n_chunks = 0;
  std::uint64_t n_crc_failures = 0;
  bool is_cached = false;          ///< all of it is in memory, once per node
  std::optional<double> mixing{};  ///< of order blocked: data::Sampler::mixing()
};

/// The rates of one rank while all ranks work.
struct MachineLimits {
  std::uint64_t matrix_side = 0;
  std::uint64_t stream_bytes = 0;
  double gflops = 0;       ///< of the library: a product of square matrices of `matrix_side`
  double memory_GBps = 0;  ///< read and written: a ReLU of `stream_bytes`
};

/// The time of one layer in a step.
struct LayerProfile {
  std::string layer{};
  double forward_ms = 0;  ///< of a step
  double backward_ms = 0;
  double gflops = 0;
  double limit_ms = 0;  ///< at the machine's limit, for both
  bool is_compute_bound = false;
};

struct ProfileReport {
  MachineLimits limits{};
  std::uint64_t n_steps = 0;
  double step_ms = 0;                  ///< mean over steps and ranks
  std::vector<LayerProfile> layers{};  ///< in forward order
};

/// Memory and traffic of a run: forecast before it, or measured in it. Nothing where it is unknown.
struct UseRecord {
  std::optional<core::Bytes> states{};  ///< of the optimizer, on the rank with most
  std::optional<core::Bytes> pool{};    ///< for parameters of others while needed, of a node or device
  std::optional<core::Bytes> peak{};    ///< of the rank that used most
  std::optional<double> sent_bytes{};   ///< of a step, all ranks together; of the synchronizer
  std::optional<double> n_messages{};
  std::optional<core::Seconds> communication{};  ///< exposed, of a step, mean over steps and ranks
};

/// A run at its end.
struct FinalRecord {
  Position at{};
  bool is_within_epoch = false;  ///< the last one was not finished
  RunStatus state = RunStatus::finished;
  std::string message{};         ///< why it stopped or failed; empty if it finished
  double loss = 0;               ///< mean over the last epoch, or its part; NaN without a step
  std::optional<double> rmse{};  ///< its root, if it is a mean squared error
  std::uint64_t n_ranks = 1;
  int n_nodes = 1;
  std::uint64_t global_batch = 0;
  std::uint64_t n_warmup_steps = 0;  ///< not counted in `steady`
  std::optional<metrics::StepSummary> steady{};
  metrics::PhaseReport phases{};  ///< of the whole run
  std::optional<EvaluationRecord> evaluation{};
  std::optional<DataRecord> data{};                 ///< nothing for synthetic samples
  core::Bytes peak_memory{};                        ///< of the rank that used most
  std::optional<UseRecord> forecast{}, measured{};  ///< nothing if it only evaluates
  bool was_profiled = false;
  std::optional<ProfileReport> profile{};  ///< nothing if all steps were warm-up
  std::string digest{};                    ///< of weights and losses, if requested
};

/// The rates of one interval, and the time left at its pace. `phases`: sums over the interval's steps.
[[nodiscard]] TrainRecord make_train_record(const Position& at, double loss, double learning_rate,
                                            const metrics::StepSummary& steps, const metrics::PhaseReport& phases,
                                            const Goal& goal);

/// The text of a JSON object, for run.json; "null" for nothing.
[[nodiscard]] std::string use_json(const std::optional<UseRecord>& record);

// Lines of log.jsonl (share/schemas/train_log-1.schema.json), without their newline.
[[nodiscard]] std::string first_line(const std::string& started);
[[nodiscard]] std::string to_line(const ResumeRecord& record);
[[nodiscard]] std::string to_line(const SaveRecord& record);
[[nodiscard]] std::string to_line(const TrainRecord& record);
[[nodiscard]] std::string to_line(const EvaluationRecord& record);
[[nodiscard]] std::string to_line(const ProfileReport& report);
[[nodiscard]] std::string to_line(const FinalRecord& record);

/// status.json (share/schemas/train_status-1.schema.json).
struct Status {
  RunStatus state = RunStatus::running;
  std::string message{};
  Position at{};
  std::optional<double> loss{};
  std::optional<core::Seconds> eta{};
  std::string checkpoint{};  ///< the last one that was written or resumed from
};
[[nodiscard]] std::string to_document(const Status& status, const std::string& updated);

}  // namespace lockstep::training

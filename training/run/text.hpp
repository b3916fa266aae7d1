// The printed text of a run: one line per progress interval, evaluation lines, and the report at its end.
// Invariant: texts are pure functions of the records.
// Used by training/run/display and, for the end, by training/run/compat.
#pragma once

#include <string>

#include "training/run/record.hpp"

namespace lockstep::training {

/// "0:03:12": hours, minutes, seconds.
[[nodiscard]] std::string clock_text(core::Seconds time);

/// Several lines: model, data, ranks, steps, memory, and where the run is stored.
[[nodiscard]] std::string start_text(const StartRecord& record, const Goal& goal);
/// "first step in 1.23 s, of 1564"
[[nodiscard]] std::string first_step_text(core::Seconds time, const Goal& goal);
/// "epoch 3/14  training: loss 0.0412, top-1 98.70 % of 60000 samples in 4.56 s (13158 samples/s)"
[[nodiscard]] std::string forecast_text(const ForecastRecord& record, const Goal& goal);
[[nodiscard]] std::string epoch_text(const EpochRecord& record, const Goal& goal);
/// "epoch 3/14  21 %  12345 samples/s  loss 0.1234  lr 0.49  ETA 0:03:12  step 4.10 ms: data wait 0.12, communication
/// 0.30"
[[nodiscard]] std::string progress_text(const TrainRecord& record, const Goal& goal);
/// "epoch 3/14  evaluation: loss 0.0312, top-1 99.02 %, top-5 100.00 % of 10000 samples in 1.23 s"; without the epoch
/// if the run does not train
[[nodiscard]] std::string evaluation_text(const EvaluationRecord& record, const Goal& goal);
/// "epoch 3/14  evaluation: 40 %"; `share` from 0 to 1
[[nodiscard]] std::string evaluation_progress_text(const Position& at, const Goal& goal, double share);
/// Several lines: outcome, loss and accuracy, steady rate and step time, a table of the phases.
/// "checkpoint r/checkpoints/step-000000021 in 12 ms".
[[nodiscard]] std::string save_text(const SaveRecord& record);
[[nodiscard]] std::string final_text(const FinalRecord& record);
/// A table of the layers, their sums, and the limits.
[[nodiscard]] std::string profile_text(const ProfileReport& report);
/// The profile, or why there is none; empty if the run was not profiled.
[[nodiscard]] std::string profile_part(const FinalRecord& record);
/// "digest      weights ... losses ..."; empty without --digest.
[[nodiscard]] std::string digest_part(const FinalRecord& record);

}  // namespace lockstep::training

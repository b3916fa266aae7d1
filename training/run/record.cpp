#include "training/run/record.hpp"

#include <nlohmann/json.hpp>

#include "metrics/fingerprint.hpp"

namespace lockstep::training {
namespace {

using Json = nlohmann::ordered_json;  // keys in the order written here

std::string line_of(const Json& json) { return metrics::dump(json, -1); }

Json milliseconds(double seconds) { return seconds * 1e3; }

template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

Json or_null(const std::optional<core::Seconds>& time) { return time ? Json(time->value) : Json(); }

Json begin_line(std::string_view kind, const Position& at) {
  return {{"kind", kind},
          {"epoch", at.epoch},
          {"step", at.step},
          {"samples_seen", at.samples_seen},
          {"elapsed_s", at.elapsed.value}};
}

Json results_of(const EvaluationRecord& record) {
  return {{"samples", record.n_samples},
          {"loss", record.loss},
          {"rmse", or_null(record.rmse)},
          {"top1_percent", or_null(record.top1_percent)},
          {"top5_percent", or_null(record.top5_percent)},
          {"time_s", record.time.value}};
}

Json to_json(const DataRecord& record, core::Seconds time) {
  return {{"read_bytes", record.read.value}, {"read_GBps", core::gigabytes_per_second(record.read, time)},
          {"chunks", record.n_chunks},       {"crc_failures", record.n_crc_failures},
          {"cached", record.is_cached},      {"mixing", or_null(record.mixing)}};
}

Json gigabytes_or_null(const std::optional<core::Bytes>& bytes) {
  return bytes ? Json(static_cast<double>(bytes->value) / 1e9) : Json();
}

Json to_json(const std::optional<UseRecord>& record) {
  if (!record) return Json{};
  return {{"mem_states_GB", gigabytes_or_null(record->states)},
          {"mem_pool_GB", gigabytes_or_null(record->pool)},
          {"mem_peak_GB", gigabytes_or_null(record->peak)},
          {"sent_GB_per_step", record->sent_bytes ? Json(*record->sent_bytes / 1e9) : Json()},
          {"n_messages_per_step", or_null(record->n_messages)},
          {"communication_ms", record->communication ? milliseconds(record->communication->value) : Json()}};
}

Json to_json(const metrics::StepSummary& steps, std::uint64_t n_warmup_steps) {
  const core::Summary& s = steps.step_s;
  return {{"steps", steps.n_steps},
          {"warmup_steps", n_warmup_steps},
          {"samples", steps.n_samples},
          {"samples_per_s", steps.samples_per_s()},
          {"step_ms_p50", milliseconds(s.median)},
          {"step_ms_p50_low", s.median_95 ? milliseconds(s.median_95->low) : Json()},
          {"step_ms_p50_high", s.median_95 ? milliseconds(s.median_95->high) : Json()},
          {"step_ms_p99", s.p99 ? milliseconds(*s.p99) : Json()},
          {"step_ms_min", milliseconds(s.min)},
          {"step_ms_max", milliseconds(s.max)}};
}

Json to_json(const metrics::PhaseReport& report) {
  Json rows = Json::array();
  for (const metrics::PhaseRow& row : report.rows) {
    rows.push_back({{"phase", metrics::name(row.phase)},
                    {"min_s", row.min_s},
                    {"mean_s", row.mean_s},
                    {"max_s", row.max_s},
                    {"max_rank", row.max_rank},
                    {"max_host", row.max_host}});
  }
  return rows;
}

}  // namespace

std::string_view name(RunStatus status) noexcept {
  switch (status) {
    case RunStatus::running: return "running";
    case RunStatus::finished: return "finished";
    case RunStatus::stopped: return "stopped";
    case RunStatus::failed: break;
  }
  return "failed";
}

TrainRecord make_train_record(const Position& at, double loss, double learning_rate, const metrics::StepSummary& steps,
                              const metrics::PhaseReport& phases, const Goal& goal) {
  const double n_steps = static_cast<double>(steps.n_steps);
  const double samples_per_s = steps.samples_per_s();
  const auto left = static_cast<double>(goal.n_samples > at.samples_seen ? goal.n_samples - at.samples_seen : 0);
  TrainRecord record{.at = at,
                     .loss = loss,
                     .learning_rate = learning_rate,
                     .samples_per_s = samples_per_s,
                     .step_ms_p50 = steps.step_s.median * 1e3,
                     .data_wait_ms = phases.mean_s(metrics::Phase::data_wait) / n_steps * 1e3,
                     .communication_ms = phases.mean_s(metrics::Phase::communication) / n_steps * 1e3};
  if (samples_per_s > 0) record.eta = core::Seconds{left / samples_per_s};
  return record;
}

std::string use_json(const std::optional<UseRecord>& record) { return to_json(record).dump(); }

std::string first_line(const std::string& started) {
  return line_of({{"kind", "start"}, {"schema", "lockstep.train_log"}, {"schema_version", 1}, {"started", started}});
}

std::string to_line(const ResumeRecord& record) {
  Json line = begin_line("resume", record.at);
  line.update({{"checkpoint", record.from}});
  if (!record.why.empty()) line["why"] = record.why;
  return line_of(line);
}

std::string to_line(const SaveRecord& record) {
  Json line = begin_line("save", record.at);
  line.update({{"checkpoint", record.path}, {"time_s", record.time.value}, {"stall_s", record.stall.value}});
  return line_of(line);
}

std::string to_line(const TrainRecord& record) {
  Json line = begin_line("train", record.at);
  line.update({{"loss", record.loss},
               {"rmse", or_null(record.rmse)},
               {"learning_rate", record.learning_rate},
               {"samples_per_s", record.samples_per_s},
               {"step_ms_p50", record.step_ms_p50},
               {"data_wait_ms", record.data_wait_ms},
               {"communication_ms", record.communication_ms},
               {"eta_s", or_null(record.eta)}});
  return line_of(line);
}

std::string to_line(const EvaluationRecord& record) {
  Json line = begin_line("evaluation", record.at);
  line.update(results_of(record));
  return line_of(line);
}

std::string to_line(const FinalRecord& record) {
  Json line = begin_line("final", record.at);
  line.update({{"state", name(record.state)},
               {"message", record.message},
               {"loss", record.loss},
               {"rmse", or_null(record.rmse)},
               {"ranks", record.n_ranks},
               {"nodes", record.n_nodes},
               {"global_batch", record.global_batch},
               {"steady", record.steady ? to_json(*record.steady, record.n_warmup_steps) : Json()},
               {"evaluation", record.evaluation ? results_of(*record.evaluation) : Json()},
               {"forecast", to_json(record.forecast)},
               {"measured", to_json(record.measured)},
               {"data", record.data ? to_json(*record.data, record.at.elapsed) : Json()},
               {"phases", to_json(record.phases)}});
  return line_of(line);
}

std::string to_line(const ProfileReport& report) {
  Json layers = Json::array();
  for (const LayerProfile& layer : report.layers)
    layers.push_back({{"layer", layer.layer},
                      {"forward_ms", layer.forward_ms},
                      {"backward_ms", layer.backward_ms},
                      {"speed_gflops", layer.gflops},
                      {"limit", layer.is_compute_bound ? "product" : "memory"},
                      {"limit_ms", layer.limit_ms}});
  const Json line{{"kind", "profile"},
                  {"steps", report.n_steps},
                  {"step_ms_mean", report.step_ms},
                  {"limit_product_gflops", report.limits.gflops},
                  {"limit_product_side", report.limits.matrix_side},
                  {"limit_memory_GBps", report.limits.memory_GBps},
                  {"limit_memory_bytes", report.limits.stream_bytes},
                  {"layers", layers}};
  return line_of(line);
}

std::string to_document(const Status& status, const std::string& updated) {
  const Json json{{"schema", "lockstep.train_status"},
                  {"schema_version", 1},
                  {"state", name(status.state)},
                  {"message", status.message},
                  {"epoch", status.at.epoch},
                  {"step", status.at.step},
                  {"samples_seen", status.at.samples_seen},
                  {"elapsed_s", status.at.elapsed.value},
                  {"eta_s", or_null(status.eta)},
                  {"loss", or_null(status.loss)},
                  {"checkpoint", status.checkpoint.empty() ? Json{} : Json(status.checkpoint)},
                  {"updated", updated}};
  return metrics::dump(json, 2) + "\n";
}

}  // namespace lockstep::training

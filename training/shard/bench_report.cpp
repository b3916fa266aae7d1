#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/table.hpp"
#include "training/shard/bench.hpp"

namespace lockstep::training::shard {
namespace {

using Json = nlohmann::ordered_json;  // keys in the order written here

std::string_view title(Stage stage) noexcept {
  switch (stage) {
    case Stage::copy: return "memory copy";
    case Stage::pread: return "pread alone";
    case Stage::read: return "read, check, decode";
    case Stage::augment: return "augment alone";
    case Stage::loader: break;
  }
  return "whole path";
}

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

double limit_percent(const BenchReport& report, const StageResult& result) {
  const StageResult* const limit = report.find(Stage::copy);
  return limit == nullptr ? 0 : percent(result.moved_GBps(), limit->moved_GBps());
}

std::string interval(const StageResult& result) {
  if (!result.us_per_sample.median_95) return "";
  const core::Interval us = *result.us_per_sample.median_95;
  return fmt::format("[{}, {}]", core::format_number(1e3 / us.high, 4), core::format_number(1e3 / us.low, 4));
}

std::string or_dash(double value) { return value > 0 ? fmt::format("{:.3f}", value) : "-"; }

std::string table(const BenchReport& report) {
  const core::Table table{{{.header = "stage", .unit = "", .width = 24, .align = core::Align::left},
                           {.header = "rate p50", .unit = "k samples/s", .width = 12},
                           {.header = "[95 %]", .unit = "", .width = 20},
                           {.header = "stored", .unit = "GB/s", .width = 9},
                           {.header = "delivered", .unit = "GB/s", .width = 10},
                           {.header = "%copy", .unit = "", .width = 7}},
                          "  "};
  std::string text = table.header();
  for (const StageResult& result : report.stages)
    text += table.row({std::string{title(result.stage)}, core::format_number(result.samples_per_s() * 1e-3, 4),
                       interval(result), or_dash(result.stored_GBps()), or_dash(result.delivered_GBps()),
                       fmt::format("{:.1f}", limit_percent(report, result))});
  return text;
}

// Bytes that the loader reads for each byte that it needs, because it reads whole blocks and chunks.
double read_amplification(const BenchReport& report) {
  const StageResult* const loader = report.find(Stage::loader);
  const StageResult* const pread = report.find(Stage::pread);
  if (loader == nullptr || pread == nullptr || pread->stored_bytes_per_sample <= 0) return 0;
  return loader->stored_bytes_per_sample / pread->stored_bytes_per_sample;
}

std::string closing_sentences(const BenchReport& report) {
  const std::vector<Share> shares = report.shares();
  if (shares.empty()) return "Not all stages could be measured: no verdict.\n";
  const StageResult& loader = *report.find(Stage::loader);
  const StageResult& pread = *report.find(Stage::pread);
  std::string text = fmt::format("\nThe whole path delivers {} k samples/s, {:.0f} % of what pread alone does.\n",
                                 core::format_number(loader.samples_per_s() * 1e-3, 4),
                                 percent(loader.samples_per_s(), pread.samples_per_s()));
  double sum = 0;
  for (const Share& share : shares) sum += share.us;
  text += fmt::format("Its {} us per sample{}:", core::format_number(loader.us_per_sample.median),
                      sum > loader.us_per_sample.median ? ", measured part by part, as parts overlap" : "");
  for (const Share& share : shares)
    text += fmt::format("{} {} {}", &share == &shares.front() ? "" : ",", share.part, core::format_number(share.us));
  text += fmt::format(". Bottleneck: {}.\n", binding(shares).part);
  if (report.loader.is_cached) return text + "The set is in memory, once per node: the loader reads no files.\n";
  if (read_amplification(report) > 1.5)
    text += fmt::format("This order reads {:.1f} bytes for each byte it needs, as blocks are read whole.\n",
                        read_amplification(report));
  return text;
}

Json to_json(const StageResult& result, const BenchReport& report) {
  const auto& us = result.us_per_sample;
  const auto rate = [](double value) { return 1e6 / value; };
  return {{"stage", name(result.stage)},
          {"repeats", result.n_repeats},
          {"samples_per_s_p50", result.samples_per_s()},
          {"samples_per_s_p50_low", us.median_95 ? Json(rate(us.median_95->high)) : Json()},
          {"samples_per_s_p50_high", us.median_95 ? Json(rate(us.median_95->low)) : Json()},
          {"stored_GBps", result.stored_GBps()},
          {"delivered_GBps", result.delivered_GBps()},
          {"limit_percent", limit_percent(report, result)}};
}

Json options_json(const BenchOptions& o) {
  return {{"split", o.split.empty() ? Json() : Json(o.split)},
          {"stage", o.stage.empty() ? Json() : Json(o.stage)},
          {"batch", o.batch},
          {"order", data::name(o.order)},
          {"window_chunks", o.window_chunks},
          {"seed", o.seed},
          {"augment", o.augment},
          {"dtype", o.dtype},
          {"layout", name_of_layout(o.layout)},
          {"cache", data::name(o.cache)},
          {"cold", o.is_cold},
          {"seconds", o.epochs > 0 ? Json() : Json(o.seconds.value)},
          {"epochs", o.epochs > 0 ? Json(o.epochs) : Json()}};
}

Json meta(const BenchReport& report, const BenchOptions& options, const runtime::Environment& e) {
  return {{"started", e.time},
          {"folder", options.folder},
          {"samples", report.n_samples},
          {"ranks", report.n_ranks},
          {"threads", report.n_threads},
          {"warmed", report.was_warmed},
          {"options", options_json(options)},
          {"lockstep", e.lockstep},
          {"compiler", e.compiler},
          {"build_type", e.build_type},
          {"mpi_library", e.mpi_library},
          {"cpu_model", e.cpu_model},
          {"governor", e.governor},
          {"kernel", e.kernel},
          {"hosts", e.hosts}};
}

Json loader_json(const BenchReport& report) {
  const data::LoaderStats& stats = report.loader;
  return {{"cached", stats.is_cached},
          {"threads", stats.threads},
          {"mixing", stats.mixing},
          {"data_wait_ms", stats.data_wait_ms},
          {"chunks", stats.n_chunks},
          {"crc_failures", stats.n_crc_failures},
          {"read_amplification", read_amplification(report)}};
}

}  // namespace

std::string_view name(Stage stage) noexcept {
  switch (stage) {
    case Stage::copy: return "copy";
    case Stage::pread: return "pread";
    case Stage::read: return "read";
    case Stage::augment: return "augment";
    case Stage::loader: break;
  }
  return "loader";
}

double StageResult::moved_GBps() const noexcept {
  return delivered_bytes_per_sample > 0 ? delivered_GBps() : stored_GBps();
}

std::optional<StageResult> summarize(Stage stage, const std::vector<Work>& repeats) {
  std::vector<double> us;
  Work sum;
  for (const Work& work : repeats) {
    if (work.n_samples <= 0 || work.time_s <= 0) continue;
    us.push_back(work.time_s * 1e6 / work.n_samples);
    sum.n_samples += work.n_samples;
    sum.bytes_stored += work.bytes_stored;
    sum.bytes_delivered += work.bytes_delivered;
  }
  if (us.empty()) return std::nullopt;
  return StageResult{.stage = stage,
                     .n_repeats = static_cast<int>(us.size()),
                     .us_per_sample = core::summarize(us),
                     .stored_bytes_per_sample = sum.bytes_stored / sum.n_samples,
                     .delivered_bytes_per_sample = sum.bytes_delivered / sum.n_samples};
}

const StageResult* BenchReport::find(Stage stage) const noexcept {
  const auto it = std::find_if(stages.begin(), stages.end(), [stage](const auto& r) { return r.stage == stage; });
  return it == stages.end() ? nullptr : &*it;
}

std::vector<Share> BenchReport::shares() const {
  if (stages.size() != all_stages.size()) return {};
  const auto us = [this](Stage stage) { return find(stage)->us_per_sample.median; };
  std::vector<Share> shares;
  if (!loader.is_cached) {
    shares.push_back({"pread", us(Stage::pread)});
    shares.push_back({"check and decode", std::max(0.0, us(Stage::read) - us(Stage::pread))});
  }
  if (loader.is_cached && is_encoded) shares.push_back({"decode", std::max(0.0, us(Stage::read) - us(Stage::pread))});
  shares.push_back({"augment", us(Stage::augment)});
  double known = 0;
  for (const Share& share : shares) known += share.us;
  const char* rest = loader.is_cached ? "order and batching" : "reading in this order, and batching";
  shares.push_back({rest, std::max(0.0, us(Stage::loader) - known)});
  return shares;
}

Share binding(const std::vector<Share>& shares) {
  return *std::max_element(shares.begin(), shares.end(), [](const Share& a, const Share& b) { return a.us < b.us; });
}

std::string describe(const BenchReport& report) {
  std::string text = fmt::format("{} samples, {} rank{} of {} thread{}, {}\n", report.n_samples, report.n_ranks,
                                 report.n_ranks == 1 ? "" : "s", report.n_threads, report.n_threads == 1 ? "" : "s",
                                 report.was_warmed ? "files read once before" : "files not read before");
  if (!report.is_complete) text += "Interrupted: fewer repeats than asked for.\n";
  return text + table(report) + closing_sentences(report);
}

std::string to_json(const BenchReport& report, const BenchOptions& options, const runtime::Environment& environment) {
  Json stages = Json::array();
  for (const StageResult& result : report.stages) stages.push_back(to_json(result, report));
  Json shares = Json::object();
  for (const Share& share : report.shares()) shares[std::string{share.part}] = share.us;
  const Json json{{"schema", "lockstep.shard_bench"},
                  {"schema_version", 1},
                  {"complete", report.is_complete},
                  {"meta", meta(report, options, environment)},
                  {"stages", stages},
                  {"loader", loader_json(report)},
                  {"time_us_per_sample", shares},
                  {"binds", shares.empty() ? Json() : Json(binding(report.shares()).part)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace lockstep::training::shard

#include "training/run/text.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/printable.hpp"
#include "core/table.hpp"

namespace lockstep::training {
namespace {

/// "12345" or "0.123": as many digits as a rate deserves, and no exponent.
std::string rate_text(double per_s) { return core::format_number(per_s); }

/// "4.10" or "12.3": three digits.
std::string milliseconds_text(double ms) {
  return fmt::format("{:.{}f}", ms, ms < 0.1 ? 4 : ms < 1 ? 3 : ms < 10 ? 2 : ms < 100 ? 1 : 0);
}

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

std::string counted(std::uint64_t n, std::string_view what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

/// The prefix of an evaluation; empty if the run does not train.
std::string epoch_prefix(const Position& at, const Goal& goal) {
  return goal.n_epochs > 0 ? fmt::format("epoch {}/{}  ", at.epoch, goal.n_epochs) : "";
}

/// "loss 0.81, rmse 0.9"; the root for squared errors only.
std::string loss_text(double loss, const std::optional<double>& rmse) {
  return fmt::format("loss {:.4g}", loss) + (rmse ? fmt::format(", rmse {:.4g}", *rmse) : "");
}

/// "loss 0.0312, top-1 99.02 %, top-5 100.00 % of 10000 samples".
std::string results_text(const EvaluationRecord& record) {
  std::string text = loss_text(record.loss, record.rmse);
  if (record.top1_percent) text += fmt::format(", top-1 {:.2f} %", *record.top1_percent);
  if (record.top5_percent) text += fmt::format(", top-5 {:.2f} %", *record.top5_percent);
  return text + fmt::format(" of {}", counted(record.n_samples, "sample"));
}

std::string outcome_text(const FinalRecord& record) {
  std::string text = fmt::format("{} {} {}, {} in {} on {}", name(record.state),
                                 record.is_within_epoch ? fmt::format("within epoch {} after", record.at.epoch)
                                                        : fmt::format("after {},", counted(record.at.epoch, "epoch")),
                                 counted(record.at.step, "step"), counted(record.at.samples_seen, "sample"),
                                 core::format_seconds(record.at.elapsed), counted(record.n_ranks, "rank"));
  if (record.n_nodes > 1) text += fmt::format(" of {} nodes", record.n_nodes);
  return record.message.empty() ? text : fmt::format("{}: {}", text, record.message);
}

std::string step_time_text(const core::Summary& step_s) {
  std::string text = fmt::format("{} ms p50", milliseconds_text(step_s.median * 1e3));
  if (step_s.median_95) {
    text += fmt::format(" [{}, {}]", milliseconds_text(step_s.median_95->low * 1e3),
                        milliseconds_text(step_s.median_95->high * 1e3));
  }
  if (step_s.p99) text += fmt::format(", {} p99", milliseconds_text(*step_s.p99 * 1e3));
  return text;
}

std::string steady_text(const FinalRecord& record) {
  if (!record.steady)
    return fmt::format("no throughput: all steps are warm-up (the first {})\n", record.n_warmup_steps);
  return fmt::format(
      "throughput  {} samples/s over {} after {} of warm-up, without evaluation and saving\nstep        {}\n",
      rate_text(record.steady->samples_per_s()), counted(record.steady->n_steps, "step"), record.n_warmup_steps,
      step_time_text(record.steady->step_s));
}

/// "987 MB read (100 MB/s) in 96 chunks, 0 check sum failures, mixing 0.75".
std::string data_text(const DataRecord& record, core::Seconds time) {
  std::string text = fmt::format(
      "{} read ({}/s) in {}, {}", core::format_decimal(record.read),
      core::format_decimal({static_cast<std::uint64_t>(core::gigabytes_per_second(record.read, time) * 1e9)}),
      counted(record.n_chunks, "chunk"), counted(record.n_crc_failures, "check sum failure"));
  if (record.is_cached) text += ", kept in memory";
  if (record.mixing) text += fmt::format(", mixing {}", core::format_number(*record.mixing));
  return text;
}

/// "51 MB (forecast 51 MB)".
std::string beside(const std::string& measured, const std::string& forecast) {
  return forecast.empty() ? measured : fmt::format("{} (forecast {})", measured, forecast);
}

std::string bytes_text(const std::optional<core::Bytes>& bytes) { return bytes ? core::format_decimal(*bytes) : ""; }

std::string sent_text(const UseRecord& use) {
  if (!use.sent_bytes || !use.n_messages) return "";
  return fmt::format("{} in {} messages", core::format_decimal({static_cast<std::uint64_t>(*use.sent_bytes)}),
                     core::format_number(*use.n_messages, 6));
}

/// What was measured, beside what was forecast.
std::string use_text(const UseRecord& measured, const UseRecord& forecast) {
  std::string text;
  const auto add = [&](std::string_view name, const auto& of_run, const auto& before) {
    if (of_run)
      text += fmt::format("{}{} {}", text.empty() ? "memory      " : ", ", name,
                          beside(bytes_text(of_run), bytes_text(before)));
  };
  add("peak", measured.peak, forecast.peak);
  add("states", measured.states, forecast.states);
  add("pool", measured.pool, forecast.pool);
  if (!text.empty()) text += "\n";
  if (measured.sent_bytes.value_or(0) > 0 || (measured.sent_bytes && forecast.sent_bytes.value_or(0) > 0))
    text += fmt::format("sent        {} per step\n", beside(sent_text(measured), sent_text(forecast)));
  return text;
}

/// "rank 3 (node7)"; "-" if all are equal.
std::string most_on(const metrics::PhaseRow& row) {
  return row.max_s > row.min_s ? fmt::format("rank {} ({})", row.max_rank, row.max_host) : "-";
}

std::string phase_table(const metrics::PhaseReport& report) {
  const core::Table table{{{.header = "phase", .unit = "", .width = 13, .align = core::Align::left},
                           {.header = "min", .unit = "(s)", .width = 10},
                           {.header = "mean", .unit = "(s)", .width = 10},
                           {.header = "max", .unit = "(s)", .width = 10},
                           {.header = "share", .unit = "(%)", .width = 6},
                           {.header = "max on", .unit = "", .align = core::Align::left}}};
  std::string text = table.header();
  for (const metrics::PhaseRow& row : report.rows) {
    if (row.phase == metrics::Phase::device && row.max_s == 0) continue;  // a host waits for no device
    text += table.row({std::string{metrics::name(row.phase)}, fmt::format("{:.4f}", row.min_s),
                       fmt::format("{:.4f}", row.mean_s), fmt::format("{:.4f}", row.max_s),
                       fmt::format("{:.1f}", percent(row.mean_s, report.total().value)), most_on(row)});
  }
  return text;
}

double layers_ms(const ProfileReport& report) {
  double sum = 0;
  for (const LayerProfile& layer : report.layers) sum += layer.forward_ms + layer.backward_ms;
  return sum;
}

}  // namespace

std::string clock_text(core::Seconds time) {
  if (!std::isfinite(time.value) || time.value < 0) return "-";
  const auto seconds = static_cast<std::uint64_t>(std::llround(time.value));
  return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

std::string start_text(const StartRecord& record, const Goal& goal) {
  std::string text =
      fmt::format("model   {}: {}, {}\ndata    {}: {}", record.model, counted(record.n_parameters, "parameter"),
                  record.precision, core::printable(record.data), counted(record.n_samples, "sample"));
  if (!record.shape.empty()) text += " of " + record.shape;
  text += record.n_evaluation > 0 ? fmt::format(", evaluated on {}\n", record.n_evaluation) : ", not evaluated\n";
  text += fmt::format("ranks   {}", counted(record.n_ranks, "rank"));
  if (record.n_nodes > 1) text += fmt::format(" on {} nodes", record.n_nodes);
  if (!record.device.empty()) text += fmt::format("\ndevice  {}", record.device);
  if (!record.why_strategy.empty())
    text += fmt::format("\nstrategy {}: {}", record.strategy, core::printable(record.why_strategy));
  if (goal.n_steps > 0)
    text += fmt::format("\nsteps   {} of {}{}", goal.n_steps, counted(record.global_batch, "sample"),
                        goal.is_within_epoch ? fmt::format(", the last within epoch {}", goal.n_epochs)
                                             : " in " + counted(goal.n_epochs, "epoch"));
  if (record.resumed)
    text += fmt::format("\nresumed epoch {}, after step {}, from {}", record.resumed->at.epoch, record.resumed->at.step,
                        core::printable(record.resumed->from));
  if (!record.promise.empty()) text += fmt::format("\nresume  {}", record.promise);
  if (record.time_left)
    text += fmt::format("\nlimit   {} are left; then the run saves a checkpoint and stops",
                        core::format_seconds(*record.time_left));
  return text +
         fmt::format(
             "\nmemory  {} of {} memory per rank for activations, parameters, gradients and the optimizer\nrun     {}",
             core::format_decimal(record.memory), record.is_device_memory ? "GPU" : "host",
             core::printable(record.folder));
}

std::string first_step_text(core::Seconds time, const Goal& goal) {
  return fmt::format("first step took {}; {} steps in all", core::format_seconds(time), goal.n_steps);
}

std::string forecast_text(const ForecastRecord& record, const Goal& goal) {
  return fmt::format("epoch {}/{}  {} fit: it takes about {}, and {} are left{}", record.epoch, goal.n_epochs,
                     record.fits() ? "will" : "will not", core::format_seconds(record.needed),
                     core::format_seconds(record.left),
                     record.fits() ? "" : "; the run saves a checkpoint within it and stops");
}

std::string epoch_text(const EpochRecord& record, const Goal& goal) {
  std::string text = fmt::format("epoch {}/{}  training: loss {:.4g}", record.at.epoch, goal.n_epochs, record.loss);
  if (record.top1_percent) text += fmt::format(", top-1 {:.2f} %", *record.top1_percent);
  text += fmt::format(" of {} in {}", counted(record.n_samples, "sample"), core::format_seconds(record.time));
  if (record.time.value > 0) text += fmt::format(" ({} samples/s)", rate_text(record.samples_per_s));
  return text;
}

std::string progress_text(const TrainRecord& record, const Goal& goal) {
  const double share = percent(static_cast<double>(record.at.samples_seen), static_cast<double>(goal.n_samples));
  std::string loss = loss_text(record.loss, record.rmse);
  if (record.first_epoch > 0 && record.first_epoch < record.at.epoch)
    loss += fmt::format(" of epochs {} to {}", record.first_epoch, record.at.epoch);
  return fmt::format(
      "epoch {}/{}  {:.0f} %  {} samples/s  {}  lr {:.4g}  ETA {}  step p50 {} ms; mean data wait {}, communication {}",
      record.at.epoch, goal.n_epochs, share, rate_text(record.samples_per_s), loss, record.learning_rate,
      record.eta ? clock_text(*record.eta) : "-", milliseconds_text(record.step_ms_p50),
      milliseconds_text(record.data_wait_ms), milliseconds_text(record.communication_ms));
}

std::string evaluation_text(const EvaluationRecord& record, const Goal& goal) {
  return fmt::format("{}evaluation: {} in {}", epoch_prefix(record.at, goal), results_text(record),
                     core::format_seconds(record.time));
}

std::string evaluation_progress_text(const Position& at, const Goal& goal, double share) {
  return fmt::format("{}evaluation: {:.0f} %", epoch_prefix(at, goal), 100 * share);
}

std::string save_text(const SaveRecord& record) {
  return fmt::format("checkpoint {} in {}, training paused for {}", core::printable(record.path),
                     core::format_seconds(record.time), core::format_seconds(record.stall));
}

std::string final_text(const FinalRecord& record) {
  std::string text = outcome_text(record) + "\n";
  if (!std::isnan(record.loss) || record.state == RunStatus::failed)
    text += fmt::format("training    {}\n", loss_text(record.loss, record.rmse));
  if (record.evaluation) text += fmt::format("evaluation  {}\n", results_text(*record.evaluation));
  text += steady_text(record);
  if (record.measured) text += use_text(*record.measured, record.forecast.value_or(UseRecord{}));
  if (record.data) text += fmt::format("data        {}\n", data_text(*record.data, record.at.elapsed));
  return record.phases.rows.empty() ? text : text + "\n" + phase_table(record.phases);
}

std::string profile_text(const ProfileReport& report) {
  std::size_t width = 12;
  for (const LayerProfile& layer : report.layers) width = std::max(width, layer.layer.size());
  const core::Table table{{{.header = "layer", .unit = "", .width = width, .align = core::Align::left},
                           {.header = "forward", .unit = "(ms)", .width = 9},
                           {.header = "backward", .unit = "(ms)", .width = 9},
                           {.header = "share", .unit = "(%)", .width = 6},
                           {.header = "speed", .unit = "(GFLOP/s)", .width = 9},
                           {.header = "limit", .unit = "", .width = 7, .align = core::Align::left},
                           {.header = "reached", .unit = "(%)", .width = 7}}};
  std::string text = table.header();
  double forward_ms = 0, backward_ms = 0, limit_ms = 0;
  const auto row = [&](const std::string& name, double forward, double backward, const std::string& gflops,
                       const std::string& limit, double at_limit_ms) {
    text += table.row({name, fmt::format("{:.3f}", forward), fmt::format("{:.3f}", backward),
                       fmt::format("{:.1f}", percent(forward + backward, report.step_ms)), gflops, limit,
                       at_limit_ms > 0 ? fmt::format("{:.0f}", percent(at_limit_ms, forward + backward)) : "-"});
  };
  for (const LayerProfile& layer : report.layers) {
    // A layer that only renames memory takes no time and has no limit.
    const bool moves_data = layer.forward_ms + layer.backward_ms > 0.01 * layer.limit_ms;
    const double layer_limit_ms = moves_data ? layer.limit_ms : 0;
    row(layer.layer, layer.forward_ms, layer.backward_ms, layer.gflops > 0 ? fmt::format("{:.1f}", layer.gflops) : "-",
        layer.is_compute_bound ? "product" : "memory", layer_limit_ms);
    forward_ms += layer.forward_ms;
    backward_ms += layer.backward_ms;
    limit_ms += layer_limit_ms;
  }
  row("all layers", forward_ms, backward_ms, "-", "both", limit_ms);
  return text + fmt::format(
                    "step        {:.3f} ms, mean of {} steps and all ranks; {:.3f} ms outside the layers\n"
                    "limits      product {:.1f} GFLOP/s, matrices of {}x{}; memory {:.1f} GB/s, a ReLU of {};\n"
                    "            per rank, measured in this run on all ranks at once. Data in caches may exceed "
                    "the memory limit.\n",
                    report.step_ms, report.n_steps, report.step_ms - layers_ms(report), report.limits.gflops,
                    report.limits.matrix_side, report.limits.matrix_side, report.limits.memory_GBps,
                    core::format_bytes({report.limits.stream_bytes}));
}

std::string profile_part(const FinalRecord& record) {
  if (!record.was_profiled) return {};
  return fmt::format("\n{}", record.profile ? profile_text(*record.profile) : "no profile: all steps were warm-up\n");
}

std::string digest_part(const FinalRecord& record) {
  return record.digest.empty() ? "" : fmt::format("digest      {}\n", record.digest);
}

}  // namespace lockstep::training

#include "training/run/text.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>

#include "core/printable.hpp"
#include "core/table.hpp"

namespace lockstep::training {
namespace {

/// "12345" or "0.123": no more digits than a rate deserves, and no exponent.
std::string rate_text(double per_s) { return core::format_number(per_s); }

/// "4.10" or "12.3": three digits.
std::string milliseconds_text(double ms) {
  return fmt::format("{:.{}f}", ms, ms < 0.1 ? 4 : ms < 1 ? 3 : ms < 10 ? 2 : ms < 100 ? 1 : 0);
}

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

std::string counted(std::uint64_t n, std::string_view what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

/// Of an evaluation; empty where nothing is trained.
std::string epoch_prefix(const Position& at, const Goal& goal) {
  return goal.n_epochs > 0 ? fmt::format("epoch {}/{}  ", at.epoch, goal.n_epochs) : "";
}

/// "loss 0.81, rmse 0.9"; the root of squared errors only.
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
  if (!record.steady) return fmt::format("no rate: all steps are warm-up (the first {})\n", record.n_warmup_steps);
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

/// "rank 3 (node7)"; nobody where all are equal.
std::string most_on(const metrics::PhaseRow& row) {
  return row.max_s > row.min_s ? fmt::format("rank {} ({})", row.max_rank, row.max_host) : "-";
}

std::string phase_table(const metrics::PhaseReport& report) {
  const core::Table table{{{.header = "phase", .unit = "", .width = 13, .align = core::Align::left},
                           {.header = "min", .unit = "(s)", .width = 10},
                           {.header = "mean", .unit = "(s)", .width = 10},
                           {.header = "max", .unit = "(s)", .width = 10},
                           {.header = "share", .unit = "(%)", .width = 6},
                           {.header = "most on", .unit = "", .align = core::Align::left}}};
  std::string text = table.header();
  for (const metrics::PhaseRow& row : report.rows) {
    text += table.row({std::string{metrics::name(row.phase)}, fmt::format("{:.4f}", row.min_s),
                       fmt::format("{:.4f}", row.mean_s), fmt::format("{:.4f}", row.max_s),
                       fmt::format("{:.1f}", percent(row.mean_s, report.total().value)), most_on(row)});
  }
  return text;
}

/// Columns of the terminal that stderr is; 80 where it does not say.
std::size_t terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
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
  if (goal.n_steps > 0)
    text += fmt::format("\nsteps   {} of {}{}", goal.n_steps, counted(record.global_batch, "sample"),
                        goal.is_within_epoch ? fmt::format(", the last within epoch {}", goal.n_epochs)
                                             : " in " + counted(goal.n_epochs, "epoch"));
  return text + fmt::format("\nmemory  {} per rank for activations, parameters and gradients\nrun     {}",
                            core::format_decimal(record.memory), core::printable(record.folder));
}

std::string first_step_text(core::Seconds time, const Goal& goal) {
  return fmt::format("first step in {}, of {}", core::format_seconds(time), goal.n_steps);
}

std::string epoch_text(const EpochRecord& record, const Goal& goal) {
  std::string text = fmt::format("epoch {}/{}  training: loss {:.4g}", record.at.epoch, goal.n_epochs, record.loss);
  if (record.top1_percent) text += fmt::format(", top-1 {:.2f} %", *record.top1_percent);
  text += fmt::format(" of {} in {}", counted(record.n_samples, "sample"), core::format_seconds(record.time));
  if (record.time.value > 0)
    text += fmt::format(" ({} samples/s)", rate_text(static_cast<double>(record.n_samples) / record.time.value));
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

std::string final_text(const FinalRecord& record) {
  std::string text = outcome_text(record) + "\n";
  if (!std::isnan(record.loss) || record.state == RunState::failed)
    text += fmt::format("training    {}\n", loss_text(record.loss, record.rmse));
  if (record.evaluation) text += fmt::format("evaluation  {}\n", results_text(*record.evaluation));
  text += steady_text(record);
  if (record.data) text += fmt::format("data        {}\n", data_text(*record.data, record.at.elapsed));
  return record.phases.rows.empty() ? text : text + "\n" + phase_table(record.phases);
}

ProgressDisplay::ProgressDisplay() : is_terminal_{::isatty(STDERR_FILENO) == 1} {}

ProgressDisplay::~ProgressDisplay() { clear(); }

void ProgressDisplay::clear() {
  if (has_line_) std::fputs("\r\x1b[K", stderr);
  has_line_ = false;
}

void ProgressDisplay::update(const std::string& line) {
  if (!is_terminal_) return print(line);
  clear();
  std::fputs(line.substr(0, terminal_width() - 1).c_str(), stderr);  // a line that wraps cannot be taken back
  std::fflush(stderr);
  has_line_ = true;
}

void ProgressDisplay::print(const std::string& line) {
  clear();
  std::fputs((line + "\n").c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace lockstep::training

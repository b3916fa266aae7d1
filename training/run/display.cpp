#include "training/run/display.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "core/printable.hpp"
#include "training/run/text.hpp"

namespace lockstep::training {
namespace {

constexpr core::Seconds longest_silence_of_evaluation{2};

/// Columns of the terminal on stderr; 80 if it does not report them.
std::size_t terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

ProgressDisplay::ProgressDisplay() : is_terminal_{::isatty(STDERR_FILENO) == 1} {}

ProgressDisplay::~ProgressDisplay() { clear(); }

void ProgressDisplay::clear() {
  if (has_line_) std::fputs("\r\x1b[K", stderr);
  has_line_ = false;
}

void ProgressDisplay::update(const std::string& line) {
  if (!is_terminal_) return print(line);
  clear();
  std::fputs(line.substr(0, terminal_width() - 1).c_str(), stderr);  // a line that wraps cannot be erased
  std::fflush(stderr);
  has_line_ = true;
}

void ProgressDisplay::print(const std::string& line) {
  clear();
  std::fputs((line + "\n").c_str(), stderr);
  std::fflush(stderr);
}

Display::Display(const Goal& goal, std::string folder, bool is_evaluation, core::Printer& printer,
                 const core::Clock& clock)
    : goal_{goal}, folder_{std::move(folder)}, is_evaluation_{is_evaluation}, printer_{printer}, since_told_{clock} {}

void Display::started(const StartRecord& record) { display_.print(start_text(record, goal_)); }

void Display::first_step_made(const Position& at) { display_.update(first_step_text(at.elapsed, goal_)); }

void Display::interval_over(const TrainRecord& record) { display_.update(progress_text(record, goal_)); }

void Display::epoch_forecast(const ForecastRecord& record) { display_.print(forecast_text(record, goal_)); }

void Display::epoch_trained(const EpochRecord& record) {
  since_told_.restart();
  if (record.n_samples > 0) display_.print(epoch_text(record, goal_));
}

void Display::evaluating(const Position& at, double share) {
  if (since_told_.elapsed().value < longest_silence_of_evaluation.value) return;
  since_told_.restart();
  display_.update(evaluation_progress_text(at, goal_, share));
}

void Display::evaluated(const EvaluationRecord& record) {
  const std::string text = evaluation_text(record, goal_);
  if (is_evaluation_)
    printer_.print(text + "\n");
  else
    display_.print(text);
}

void Display::saved(const SaveRecord& record) { display_.print(save_text(record)); }

void Display::ended(const FinalRecord& record) {
  display_.clear();
  if (!is_evaluation_) printer_.print(final_text(record));
  printer_.print(profile_part(record));
  const std::string folder = core::printable(folder_);
  printer_.print(fmt::format("run         {}\n", folder));
  if (record.state == RunStatus::stopped && !is_evaluation_)
    printer_.print(fmt::format("resume      rerun the same command with --run-dir {} --resume auto\n", folder));
  printer_.print(digest_part(record));
}

}  // namespace lockstep::training

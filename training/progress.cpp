#include "training/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "runtime/interrupt.hpp"

namespace lockstep::training {
namespace {

constexpr std::size_t terminal_bar = 30;
constexpr double terminal_period_s = 0.2;
constexpr double line_period_s = 10;

std::string bar(double share, std::size_t width) {
  const auto n_full = static_cast<std::size_t>(share * static_cast<double>(width));
  return fmt::format("[{}{}] ", std::string(n_full, '='), std::string(width - n_full, ' '));
}

std::string rate(ProgressUnit unit, double per_second) {
  if (unit == ProgressUnit::bytes) return core::format_decimal({static_cast<std::uint64_t>(per_second)}) + "/s";
  return per_second >= 1e4 ? core::format_number(per_second * 1e-3) + " k samples/s"
                           : core::format_number(per_second) + " samples/s";
}

}  // namespace

std::string progress_line(const std::string& what, ProgressUnit unit, std::uint64_t n_done, std::uint64_t n_all,
                          core::Seconds elapsed, std::size_t bar_width) {
  const double share = n_all == 0 ? 1 : std::min(1.0, static_cast<double>(n_done) / static_cast<double>(n_all));
  std::string line = what + " ";
  if (bar_width > 0) line += bar(share, bar_width);
  line += fmt::format("{:.0f} %", share * 100);
  if (n_done == 0 || elapsed.value <= 0) return line;
  if (unit != ProgressUnit::stages) line += "  " + rate(unit, static_cast<double>(n_done) / elapsed.value);
  line += fmt::format("  {} left", core::format_seconds({elapsed.value * (1 - share) / share}));
  return line;
}

Progress::Progress(std::string what, ProgressUnit unit, bool is_shown, const core::Clock& clock)
    : what_{std::move(what)},
      unit_{unit},
      is_shown_{is_shown},
      is_terminal_{::isatty(STDERR_FILENO) == 1},
      watch_{clock} {}

Progress::~Progress() {
  if (has_shown_ && is_terminal_) std::fputs("\r\x1b[K", stderr);
}

bool Progress::update(std::uint64_t n_done, std::uint64_t n_all) {
  const core::Seconds elapsed = watch_.elapsed();
  if (is_shown_ && elapsed.value >= next_s_) {
    const std::string line = progress_line(what_, unit_, n_done, n_all, elapsed, is_terminal_ ? terminal_bar : 0);
    std::fputs(is_terminal_ ? ("\r\x1b[K" + line).c_str() : (line + "\n").c_str(), stderr);
    std::fflush(stderr);
    has_shown_ = true;
    next_s_ = elapsed.value + (is_terminal_ ? terminal_period_s : line_period_s);
  }
  return runtime::pending_interrupt() == 0;
}

}  // namespace lockstep::training

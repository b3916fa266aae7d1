#include "training/train/time_limit.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "core/log.hpp"
#include "runtime/output_of.hpp"

namespace lockstep::training {

namespace {

constexpr core::Seconds unlimited{std::numeric_limits<double>::infinity()};

std::optional<std::int64_t> parse_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [last, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc{} || last != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

std::optional<core::Seconds> if_above_zero(std::int64_t left) {
  return left > 0 ? std::optional{core::Seconds{static_cast<double>(left)}} : std::nullopt;
}

/// Parses "1:02:03", also with fewer parts.
std::optional<std::int64_t> parse_duration(std::string_view text) {
  std::int64_t seconds = 0;
  for (;;) {
    const std::size_t end = std::min(text.find(':'), text.size());
    const auto part = parse_number(text.substr(0, end));
    if (!part || *part > 1'000'000'000) return std::nullopt;
    seconds = seconds * 60 + *part;
    if (end == text.size()) return seconds;
    text.remove_prefix(end + 1);
  }
}

/// Parses "Mon Nov 23 10:00:00 2026".
std::optional<std::int64_t> parse_date(const std::string& text) {
  std::tm date{};
  const char* const end = strptime(text.c_str(), "%a %b %d %H:%M:%S %Y", &date);
  date.tm_isdst = -1;
  if (end == nullptr || *end != '\0') return std::nullopt;
  return std::mktime(&date);
}

/// Warns that `what` does not report when the job ends.
void warn_of_no_end(const std::string& what) {
  core::log_warning(what +
                    ", so the run cannot save a checkpoint before that; set --time-limit, or --time-limit 0 to silence "
                    "this warning");
}

/// Returns the time that `left_by` reads from the answer to `question`; warns if there is none.
template <class Read>
std::optional<core::Seconds> ask(const std::vector<std::string>& question, Read left_by) {
  const auto text = runtime::output_of(question, time_for_answer);
  const std::optional<core::Seconds> left = text ? left_by(*text) : std::nullopt;
  if (!left) warn_of_no_end(fmt::format("'{}' does not report when this job ends", fmt::join(question, " ")));
  return left && left->value < unlimited.value ? left : std::nullopt;
}

}  // namespace

std::optional<core::Seconds> time_left_by_squeue(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  if (text == "UNLIMITED") return unlimited;
  const std::size_t n_days = text.find('-');
  const auto days = n_days == text.npos ? 0 : parse_number(text.substr(0, n_days));
  const auto rest = parse_duration(text.substr(n_days == text.npos ? 0 : n_days + 1));
  if (!days || *days > 1'000'000 || !rest) return std::nullopt;
  constexpr std::int64_t seconds_per_day = 86'400;
  return if_above_zero(*days * seconds_per_day + *rest);
}

// Long values continue in lines that begin with a tab; the two wanted are short.
std::optional<core::Seconds> time_left_by_qstat(std::string_view text, std::int64_t now) {
  std::optional<std::int64_t> walltime, start;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    constexpr std::string_view equals = " = ";
    const std::size_t middle = line.find(equals);
    if (middle == line.npos) continue;
    const std::string_view name = line.substr(0, middle), value = line.substr(middle + equals.size());
    if (name == "Resource_List.walltime") walltime = parse_duration(value);
    if (name == "stime" || name == "start_time") start = parse_date(std::string{value});
  }
  if (!walltime || !start) return std::nullopt;
  return if_above_zero(*start + *walltime - now);
}

std::optional<core::Seconds> time_left_of_job(const core::Clock& clock) {
  if (const char* const text = std::getenv("SLURM_JOB_END_TIME")) {
    const auto end = parse_number(text);
    const auto left = end ? if_above_zero(*end - clock.date()) : std::nullopt;
    if (!left)
      warn_of_no_end(
          fmt::format("SLURM_JOB_END_TIME does not say when this job ends: '{}' is not a time to come, in "
                      "seconds since 1970",
                      text));
    return left;
  }
  if (const char* const job = std::getenv("SLURM_JOB_ID"))
    return ask({"squeue", "--noheader", "--jobs", job, "--format", "%L"}, time_left_by_squeue);
  if (const char* const job = std::getenv("PBS_JOBID"))
    return ask({"qstat", "-f", job},
               [&clock](const std::string& text) { return time_left_by_qstat(text, clock.date()); });
  return std::nullopt;
}

}  // namespace lockstep::training

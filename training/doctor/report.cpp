#include "training/doctor/report.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>

#include "core/table.hpp"
#include "core/version.hpp"
#include "training/doctor/checks.hpp"
#include "training/doctor/mpi_library.hpp"

namespace lockstep::training::doctor {
namespace {

using ReportJson = nlohmann::ordered_json;  // keys in the order written here

std::size_t count(const std::vector<Judged>& all, Verdict verdict) {
  return static_cast<std::size_t>(
      std::ranges::count(all, verdict, [](const Judged& one) { return one.finding.verdict; }));
}

std::string plural(std::size_t n, std::string_view noun) { return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s"); }

bool has_fix(const Finding& finding) { return finding.verdict > Verdict::ok && !finding.fix.empty(); }

/// The lines of `text`.
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

ReportJson meta_json(const Job& job) {
  return {{"started", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
          {"lockstep", core::version()},
          {"mpi_library", name_mpi(job.ranks.front().mpi_library)},
          {"launcher", job.ranks.front().launcher},
          {"ranks", job.n_ranks()},
          {"nodes", job.topology.n_nodes},
          {"hosts", job.topology.hosts()}};
}

}  // namespace

std::vector<Judged> judge_all(const Job& job) {
  std::vector<Judged> all;
  for (const Check& check : all_checks()) all.push_back({check.name, check.judge(job)});
  return all;
}

bool would_fail(const std::vector<Judged>& all) noexcept {
  return std::ranges::any_of(all, [](const Judged& one) { return one.finding.verdict == Verdict::fail; });
}

std::string describe(const std::vector<Judged>& all) {
  using core::Align;
  const core::Table table{{{.header = "check", .unit = "", .width = 15, .align = Align::left},
                           {.header = "verdict", .unit = "", .width = 7, .align = Align::left},
                           {.header = "seen", .unit = "", .width = 4, .align = Align::left}}};
  std::string text = table.header();
  for (const auto& [check, finding] : all) {
    const std::vector<std::string> lines = lines_of(finding.seen);
    text += table.row({std::string{check}, std::string{name(finding.verdict)}, lines.front()});
    for (std::size_t i = 1; i < lines.size(); ++i) text += table.row({"", "", lines[i]});
    if (has_fix(finding)) text += table.row({"", "", "fix: " + finding.fix});
  }
  return text + fmt::format("{}: {} ok, {}, {}, {} would fail, {} not checked\n", plural(all.size(), "check"),
                            count(all, Verdict::ok), plural(count(all, Verdict::note), "note"),
                            plural(count(all, Verdict::warning), "warning"), count(all, Verdict::fail),
                            count(all, Verdict::skipped));
}

std::string to_json(const std::vector<Judged>& all, const Job& job) {
  ReportJson counts, checks = ReportJson::array();
  for (const Verdict verdict : all_verdicts) counts[std::string{name(verdict)}] = count(all, verdict);
  for (const auto& [check, finding] : all)
    checks.push_back({{"name", check},
                      {"verdict", name(finding.verdict)},
                      {"seen", finding.seen},
                      {"fix", has_fix(finding) ? finding.fix : ""}});
  const ReportJson json{{"schema", "lockstep.doctor"}, {"schema_version", 1}, {"would_fail", would_fail(all)},
                        {"meta", meta_json(job)},      {"counts", counts},    {"checks", checks}};
  return json.dump(2, ' ', false, ReportJson::error_handler_t::replace) + "\n";
}

}  // namespace lockstep::training::doctor

#include "reduce_all/gate.hpp"

#include <algorithm>
#include <span>

#include "core/error.hpp"
#include "core/pending.hpp"
#include "core/print.hpp"
#include "reduce_all/result.hpp"

namespace lockstep::reduce_all {
namespace {

constexpr const char* this_run = "this run";

std::vector<report::Results> read_comparable(const std::vector<std::string>& paths, std::string_view flag,
                                             const report::Results& now) {
  std::vector<report::Results> launches;
  for (const std::string& path : paths) {
    launches.push_back(report::read_results(path, flag));
    report::require_comparable(launches.back(), now, flag);
  }
  return launches;
}

void require_common_call(const std::vector<report::Results>& launches, std::span<const comm::Call> calls,
                         bool in_place) {
  const auto is_measured = [&](const report::Series& series) {
    const report::Subject& s = series.subject;
    return s.in_place == in_place && std::ranges::any_of(calls, [&s](const comm::Call& call) {
             return s.bytes == call.bytes().value && s.dtype == core::name(call.dtype) && s.op == op_name(call) &&
                    s.collective == comm::name(call.collective);
           });
  };
  for (const report::Results& launch : launches)
    if (std::ranges::any_of(launch.series, is_measured)) return;
  core::fail_usage({.what = "this run would measure no row of the baseline",
                    .where = "--baseline",
                    .expected = "a size, type, op, collective and --in-place as in the baseline",
                    .fix = "use the flags of the baseline: its file has them in meta.arguments"});
}

void publish(const report::Comparison& comparison, const std::string& junit_path) {
  core::print(report::to_text(comparison));
  if (junit_path.empty()) return;
  const std::string xml = report::to_junit(comparison);
  core::write_whole(junit_path, std::as_bytes(std::span{xml}));
}

}  // namespace

Gate::Gate(const Options& options, std::span<const comm::Call> calls, const std::string& blank)
    : tolerance_{options.tolerance}, junit_path_{options.junit} {
  const report::Results now = report::parse_results(blank, this_run);
  before_ = read_comparable(options.baseline, "--baseline", now);
  require_common_call(before_, calls, options.in_place);
  if (!junit_path_.empty()) core::check_writable(junit_path_, "--junit");
}

report::Comparison Gate::judge(const std::string& document) const {
  const report::Results now = report::parse_results(document, this_run);
  report::Comparison comparison = report::compare(before_, std::span{&now, 1}, tolerance_);
  publish(comparison, junit_path_);
  return comparison;
}

core::ExitCode compare_files(const Options& options) {
  const report::Results first = report::read_results(options.now.front(), "--now");
  const std::vector<report::Results> now = read_comparable(options.now, "--now", first);
  const std::vector<report::Results> before = read_comparable(options.baseline, "--baseline", first);
  if (!options.junit.empty()) core::check_writable(options.junit, "--junit");
  const report::Comparison comparison = report::compare(before, now, options.tolerance);
  if (comparison.count(report::Verdict::gone) + comparison.count(report::Verdict::added) == comparison.rows.size())
    core::fail_usage({.what = "the files have no row in common",
                      .where = "--baseline, --now",
                      .expected = "a size, type, op, collective and algorithm that both sides have",
                      .fix = "measure both sides with the same flags: the files have theirs in meta.arguments"});
  publish(comparison, options.junit);
  return comparison.is_passed() ? core::ExitCode::ok : core::ExitCode::failed;
}

}  // namespace lockstep::reduce_all

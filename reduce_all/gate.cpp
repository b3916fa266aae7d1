#include "reduce_all/gate.hpp"

#include <span>

#include "core/pending.hpp"
#include "core/print.hpp"

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

}  // namespace

Gate::Gate(const Options& options, const std::string& blank)
    : tolerance_{options.tolerance}, junit_path_{options.junit} {
  const report::Results now = report::parse_results(blank, this_run);
  before_ = read_comparable(options.baseline, "--baseline", now);
  pooled_ = read_comparable(options.pool, "--pool", now);
  if (!junit_path_.empty()) core::check_writable(junit_path_, "--junit");
}

report::Comparison Gate::judge(const std::string& document) const {
  std::vector<report::Results> now{report::parse_results(document, this_run)};
  now.insert(now.end(), pooled_.begin(), pooled_.end());
  report::Comparison comparison = report::compare(before_, now, tolerance_);
  core::print(report::to_text(comparison));
  if (!junit_path_.empty()) {
    const std::string xml = report::to_junit(comparison);
    core::write_whole(junit_path_, std::as_bytes(std::span{xml}));
  }
  return comparison;
}

}  // namespace lockstep::reduce_all

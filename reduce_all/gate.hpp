// The gate of --baseline: reads earlier results and judges this run.
// Invariant: lives on rank 0; errors in the files are found before the first measurement.
// Used by run.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "reduce_all/options.hpp"
#include "report/comparison.hpp"

namespace lockstep::reduce_all {

class Gate {
 public:
  /// Reads the files of --baseline and claims that of --junit. `calls`: what will be measured. `blank`: the result file
  /// of this run, without rows. Throws core::Error (usage) if a file cannot be read or is not comparable with this run,
  /// or if the baseline has none of the calls.
  Gate(const Options& options, std::span<const comm::Call> calls, const std::string& blank);

  /// `document`: the result file of this run. Prints the comparison and writes it as JUnit XML, if requested.
  [[nodiscard]] report::Comparison judge(const std::string& document) const;

 private:
  std::vector<report::Results> before_;
  double tolerance_;
  std::string junit_path_;  ///< empty: not requested
};

/// Compares the files of --now with those of --baseline, like the gate; returns the exit code. Throws core::Error
/// (usage) if a file cannot be read, or they are not comparable.
[[nodiscard]] core::ExitCode compare_files(const Options& options);

}  // namespace lockstep::reduce_all

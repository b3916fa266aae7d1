// The gate of --baseline: reads what was measured before, judges what is measured now.
// Invariant: lives on rank 0; whatever is wrong with the files is known before the first measurement.
// Used by run.
#pragma once

#include <string>
#include <vector>

#include "reduce_all/options.hpp"
#include "report/comparison.hpp"

namespace lockstep::reduce_all {

class Gate {
 public:
  /// Reads the files of --baseline and --pool and claims that of --junit. `blank`: the result file of this run, without
  /// rows. Throws core::Error (usage) if one cannot be read or does not compare with this run.
  Gate(const Options& options, const std::string& blank);

  /// `document`: the result file of this run. Prints the comparison and writes it as JUnit's XML, if asked for.
  [[nodiscard]] report::Comparison judge(const std::string& document) const;

 private:
  std::vector<report::Results> before_;
  std::vector<report::Results> pooled_;
  double tolerance_;
  std::string junit_path_;  ///< empty: none is asked for
};

}  // namespace lockstep::reduce_all

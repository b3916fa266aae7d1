// A GPU for programs that are useless without one.
// Invariant: starts without a driver.
// Used by the programs of tests/gpu.
#pragma once

#include "core/print.hpp"
#include "runtime/gpu.hpp"

namespace lockstep::test {

inline constexpr int skipped = 77;  ///< exit code that ctest and run-gpu-checks recognise

/// Puts the first GPU in use, or says why there is none.
[[nodiscard]] inline bool use_gpu() {
  const runtime::GpuSurvey survey = runtime::survey_gpus();
  if (survey.gpus.empty()) {
    core::print("no GPU: {}; {}\n", survey.obstacle, survey.fix);
    return false;
  }
  const runtime::Gpu& gpu = survey.gpus.front();
  core::print("{} ({}), sm_{}, {} multiprocessors\n", gpu.name, gpu.uuid, gpu.architecture, gpu.n_multiprocessors);
  runtime::exchange_accelerator(runtime::open_gpu(0));
  return true;
}

}  // namespace lockstep::test

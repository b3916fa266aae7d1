// A build without CUDA can use no GPU.
#include "core/error.hpp"
#include "runtime/gpu.hpp"

namespace lockstep::runtime {

GpuSurvey survey_gpus() {
  return {.obstacle = "this program is built without CUDA",
          .fix = "build with nvcc in $PATH (INSTALL: GPUs); the table of ./bootstrap build shows what was found"};
}

std::unique_ptr<Accelerator> open_gpu(int) { core::fail_system(survey_gpus().obstacle); }

}  // namespace lockstep::runtime

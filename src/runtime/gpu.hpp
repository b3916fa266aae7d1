// The GPUs that this process can use, and one of them as its device.
// Invariant: a survey takes no GPU memory and never fails: the obstacle is part of its answer.
// Used by the programs; implemented by gpu_cuda.cpp, or by no_cuda.cpp in builds without CUDA.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "runtime/accelerator.hpp"

namespace lockstep::runtime {

struct Gpu {
  std::string name;  ///< "NVIDIA H200"
  std::string uuid;  ///< "GPU-8f6d...", as in nvidia-smi: the same for any CUDA_VISIBLE_DEVICES
  std::string pci;   ///< "0000:1b:00.0"
  core::Bytes memory{};
  core::Bytes cache{};   ///< of the second level, shared by all multiprocessors
  int architecture = 0;  ///< 90 for sm_90
  int n_multiprocessors = 0;
  std::vector<int> processors{};  ///< logical processors of the host near it (OS indices); none if unknown
  bool has_switches = false;      ///< NVSwitches that can multicast and add up, as the driver reports

  /// Whether it multiplies matrices in bf16, as GPUs since the A100 do.
  [[nodiscard]] bool has_bf16() const noexcept { return architecture >= 80; }
};

struct GpuSurvey {
  std::vector<Gpu> gpus{};  ///< by their number in this process
  std::string obstacle{};   ///< why there are none: "no NVIDIA driver (libcuda.so.1) on this machine"
  std::string fix{};        ///< what would help, if known
  std::string driver{};     ///< the newest CUDA it supports: "13.0"; empty without a driver
  std::string toolkit{};    ///< the CUDA this program is built with; empty without CUDA
};
[[nodiscard]] GpuSurvey survey_gpus();

/// Opens the GPU of that number in the survey, for exchange_accelerator(). Throws core::Error (system) if it cannot be
/// used.
[[nodiscard]] std::unique_ptr<Accelerator> open_gpu(int number);

}  // namespace lockstep::runtime

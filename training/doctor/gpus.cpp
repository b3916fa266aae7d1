#include "training/doctor/gpus.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "comm/device_plan.hpp"
#include "core/error.hpp"
#include "nn/device.hpp"
#include "runtime/gpu.hpp"

namespace lockstep::training::doctor {
namespace {

/// Asks the linked library, if there is one, so none of its headers is needed.
std::string cudnn_version() {
  auto* const ask = reinterpret_cast<std::size_t (*)()>(dlsym(RTLD_DEFAULT, "cudnnGetVersion"));
  return ask == nullptr ? "" : version_of_number(ask());
}

}  // namespace

std::string version_of_number(std::uint64_t number) {
  return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

GpuFacts look_at_gpus() {
  const runtime::GpuSurvey survey = runtime::survey_gpus();
  GpuFacts facts{.obstacle = survey.obstacle,
                 .fix = survey.fix,
                 .driver = survey.driver,
                 .toolkit = survey.toolkit,
                 .cudnn = cudnn_version(),
                 .nccl = comm::nccl_version()};
  if (const auto complaint = core::complaint_of(comm::require_nccl)) {
    facts.nccl_obstacle = complaint->problem().what;
    facts.nccl_fix = complaint->problem().fix;
  }
  for (const runtime::Gpu& gpu : survey.gpus)
    facts.seen.push_back({.name = gpu.name, .uuid = gpu.uuid, .memory = gpu.memory.value, .has_bf16 = gpu.has_bf16()});
  if (const std::string_view lacking = nn::lacking_for_acceleration(); !facts.seen.empty() && !lacking.empty()) {
    facts.seen.clear();
    facts.obstacle = lacking;
    facts.fix = "build it with cuDNN and its frontend (INSTALL), or use --device host";
  }
  return facts;
}

}  // namespace lockstep::training::doctor

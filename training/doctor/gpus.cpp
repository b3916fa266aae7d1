#include "training/doctor/gpus.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "runtime/gpu.hpp"

namespace lockstep::training::doctor {
namespace {

/// A function of a library that this program was linked with; null if it was not. So no header of it is needed.
template <class Function>
Function* loaded(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

std::string cudnn_version() {
  auto* const ask = loaded<std::size_t()>("cudnnGetVersion");
  return ask == nullptr ? "" : version_of_number(ask());
}

std::string nccl_version() {
  auto* const ask = loaded<int(int*)>("ncclGetVersion");
  int number = 0;
  return ask == nullptr || ask(&number) != 0 ? "" : version_of_number(static_cast<std::uint64_t>(number));
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
                 .nccl = nccl_version()};
  for (const runtime::Gpu& gpu : survey.gpus)
    facts.seen.push_back({.name = gpu.name, .uuid = gpu.uuid, .memory = gpu.memory.value});
  return facts;
}

}  // namespace lockstep::training::doctor

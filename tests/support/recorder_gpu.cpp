// Made-up GPUs, simulated by a recorder: a program links this in place of runtime/gpu_cuda.cpp.
// Invariant: at the end of the process the recorder's complaints are printed and become exit code 99.
// Used by the programs *_on_recorder, and by tests of whole commands in tests/mpi.
// $LOCKSTEP_MADE_UP_GPUS: the number of GPUs of the machine, 1 by default, or "visible": those in
// $CUDA_VISIBLE_DEVICES, which a batch system sets, and none without it. Each has $LOCKSTEP_MADE_UP_GPU_BYTES and
// $LOCKSTEP_MADE_UP_GPU_ARCHITECTURE, 90, and is near the processors of "0-3;4-7" in $LOCKSTEP_MADE_UP_GPU_PROCESSORS;
// $LOCKSTEP_MADE_UP_SWITCHES: 0 if they have none.
#include <fmt/format.h>

#include <cstdlib>
#include <numeric>
#include <sstream>
#include <string_view>
#include <vector>

#include "core/fnv.hpp"
#include "core/print.hpp"
#include "runtime/gpu.hpp"
#include "runtime/processor_list.hpp"
#include "runtime/session.hpp"
#include "support/made_up_gpus.hpp"

namespace lockstep::runtime {
namespace {

// They outlive all buffers, even those of static objects.
std::vector<test::Recorder*>& recorders() {
  static auto& all = *new std::vector<test::Recorder*>;
  return all;
}

std::string_view text_in(const char* variable) {
  const char* const asked = std::getenv(variable);
  return asked != nullptr ? asked : "";
}

std::uint64_t number_in(const char* variable, std::uint64_t otherwise) {
  const char* const asked = std::getenv(variable);
  return asked != nullptr ? std::strtoull(asked, nullptr, 10) : otherwise;
}

void complain() {
  const std::vector<std::string> complaints = test::made_up_gpus_complain();
  for (const std::string& complaint : complaints) core::print("recorder: " + complaint + "\n");
  if (!complaints.empty()) std::_Exit(99);
}

std::vector<int> numbers_made_up() {
  if (text_in("LOCKSTEP_MADE_UP_GPUS") == "visible")
    return parse_processors(std::string{text_in("CUDA_VISIBLE_DEVICES")});
  std::vector<int> numbers(number_in("LOCKSTEP_MADE_UP_GPUS", 1));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}
core::Bytes memory() { return {number_in("LOCKSTEP_MADE_UP_GPU_BYTES", std::uint64_t{1} << 30)}; }

std::vector<int> processors_near(int number) {
  std::istringstream lists{std::string{text_in("LOCKSTEP_MADE_UP_GPU_PROCESSORS")}};
  std::string list;
  for (int i = 0; i <= number; ++i)
    if (!std::getline(lists, list, ';')) return {};
  return parse_processors(list);
}

}  // namespace

GpuSurvey survey_gpus() {
  GpuSurvey survey{.driver = "13.0", .toolkit = "13.0"};
  const auto host = static_cast<std::uint16_t>(core::fnv1a(host_name()));  // GPUs of two nodes differ
  for (const int number : numbers_made_up())
    survey.gpus.push_back({.name = "made-up GPU",
                           .uuid = fmt::format("GPU-00000000-0000-0000-{:04x}-{:012x}", host, number),
                           .pci = fmt::format("0000:{:02x}:00.0", number),
                           .memory = memory(),
                           .cache = core::Bytes{std::uint64_t{1} << 20},
                           .architecture = static_cast<int>(number_in("LOCKSTEP_MADE_UP_GPU_ARCHITECTURE", 90)),
                           .n_multiprocessors = 132,
                           .processors = processors_near(number),
                           .has_switches = number_in("LOCKSTEP_MADE_UP_SWITCHES", 1) != 0});
  if (survey.gpus.empty()) survey.obstacle = "the NVIDIA driver shows no GPU to this process";
  return survey;
}

std::unique_ptr<Accelerator> open_gpu(int) {
  [[maybe_unused]] static const int once = std::atexit(complain);
  recorders().push_back(new test::Recorder);
  recorders().back()->limit_memory(memory());
  return recorders().back()->device();
}

}  // namespace lockstep::runtime

namespace lockstep::test {

const Recorder& made_up_gpu() { return *runtime::recorders().back(); }

std::vector<std::string> made_up_gpus_complain() {
  std::vector<std::string> all;
  for (const Recorder* const one : runtime::recorders())
    all.insert(all.end(), one->complaints().begin(), one->complaints().end());
  return all;
}

}  // namespace lockstep::test

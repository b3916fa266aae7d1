#include "training/doctor/variables.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <span>

#include "runtime/environment.hpp"

namespace lockstep::training::doctor {
namespace {

bool begins_with_any(std::string_view text, std::span<const std::string_view> beginnings) {
  return std::ranges::any_of(beginnings, [text](std::string_view begin) { return text.starts_with(begin); });
}

bool has_any(std::string_view text, std::span<const std::string_view> parts) {
  return std::ranges::any_of(parts, [text](std::string_view part) { return text.find(part) != text.npos; });
}

}  // namespace

bool is_looked_at(std::string_view variable) {
  constexpr std::array<std::string_view, 4> more{"SLURM_", "PBS_", "OMP_", "MASTER_"};
  constexpr std::array<std::string_view, 6> secret{"KEY", "TOKEN", "SECRET", "PASS", "CRED", "COOKIE"};
  return runtime::is_recordable(variable) || (begins_with_any(variable, more) && !has_any(variable, secret));
}

bool is_of_rank(std::string_view variable) {
  if (variable == "SLURM_JOB_ID" || variable == "PBS_JOBID") return false;
  // Batch systems set variables about tasks, steps and nodes, and more of them on nodes where they start a launcher.
  constexpr std::array<std::string_view, 5> beginnings{"SLURM_", "PBS_", "PALS_", "CUDA_VISIBLE", "MASTER_"};
  return begins_with_any(variable, beginnings) || variable.find("RANK") != variable.npos;
}

std::map<std::string, std::string> read_variables() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text{*entry};
    const std::size_t equals = text.find('=');
    if (equals != text.npos && is_looked_at(text.substr(0, equals)))
      variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

}  // namespace lockstep::training::doctor

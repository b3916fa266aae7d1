#include "training/run/info.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <span>
#include <utility>

#include "core/instruction_sets.hpp"
#include "nn/device.hpp"

namespace lockstep::training {

RunInfo run_info(const runtime::Communicator& world, const runtime::Topology& topology,
                 const runtime::DeviceChoice& device, const ResolvedRecipe& resolved,
                 const std::vector<std::string>& arguments) {
  std::vector<std::string> warnings = topology.warnings(resolved.recipe.threads);
  for (const std::string& warning : {runtime::warning_of_far_gpus(device, topology), core::instruction_limit_warning()})
    if (!warning.empty()) warnings.push_back(warning);
  auto libraries = nn::host_libraries();
  libraries.insert(libraries.begin(), {"hdf5", LOCKSTEP_HDF5_VERSION});
  return {.arguments = arguments,
          .recipe_name = resolved.recipe.name,
          .recipe_json = recipe_json(resolved.recipe),
          .resume = resume_promise(resolved.recipe, world.n_ranks()),
          .environment = runtime::read_environment(world),
          .topology = topology,
          .device = device,
          .libraries = std::move(libraries),
          .warnings = std::move(warnings)};
}

core::Bytes peak_memory(const runtime::Communicator& world) {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto mine = static_cast<std::uint64_t>(used.ru_maxrss) * 1024;
  core::Bytes most{mine};
  for (const std::uint64_t bytes : runtime::gather_values(world, std::span{&mine, 1}))
    most.value = std::max(most.value, bytes);
  return most;
}

}  // namespace lockstep::training

#include "training/run/info.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "core/instruction_sets.hpp"
#include "runtime/session.hpp"

namespace lockstep::training {

RunInfo run_info(const runtime::Communicator& world, const runtime::Topology& topology, const ResolvedRecipe& resolved,
                 const std::vector<std::string>& arguments) {
  std::vector<std::string> warnings = topology.warnings(resolved.recipe.threads);
  if (const std::string warning = core::instruction_limit_warning(); !warning.empty()) warnings.push_back(warning);
  return {.arguments = arguments,
          .recipe_name = resolved.recipe.name,
          .recipe_json = recipe_json(resolved.recipe),
          .environment = runtime::read_environment(world),
          .topology = topology,
          .libraries = {{"hdf5", LOCKSTEP_HDF5_VERSION},
                        {"kokkos", LOCKSTEP_KOKKOS_VERSION},
                        {"onednn", LOCKSTEP_ONEDNN_VERSION}},
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

CompatRun compat_run(const runtime::Communicator& world, const runtime::Topology& topology, const Recipe& recipe,
                     const Batches& batches, const Batches* evaluation, std::uint64_t n_epochs) {
  CompatRun run{.hosts = world.gather(runtime::host_name()),
                .data = recipe.data,
                .n_train = batches.info().n_samples,
                .n_evaluation = evaluation != nullptr ? evaluation->info().n_samples : 0,
                .n_epochs = n_epochs,
                .n_steps = batches.n_batches()};
  const std::uint64_t most = batches.most();
  run.batches = runtime::gather_values(world, std::span{&most, 1});
  std::map<int, int> n_on_node;
  for (const runtime::Place& place : topology.places) run.local_ranks.push_back(n_on_node[place.node]++);
  return run;
}

}  // namespace lockstep::training

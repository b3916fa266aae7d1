#include "training/doctor/facts.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace lockstep::training::doctor {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Port, name, kind, is_active, gbps)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Library, name, path, bytes, modified)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(SeenGpu, name, uuid, memory, has_bf16)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(GpuFacts, seen, obstacle, fix, driver, toolkit, cudnn, nccl,
                                                nccl_obstacle, nccl_fix)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Limits, locked_memory, open_files, stack, core_file, address_space_left,
                                                data_left)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(SetFacts, complaint, fix, n_samples, n_files, n_looked, x, classes,
                                                file_system, n_read, seconds, cached_percent, unread)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(FolderFacts, complaint, path, file_system, is_network, is_in_home, size,
                                                free, flock, fcntl, meeting)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Obstacle, what, fix)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(NodeFacts, kernel, cpu_model, n_cpus, n_numa, governors, huge_pages,
                                                numa_balancing, cpu_quota, memory, shm_size, shm_free, ports, gpus,
                                                data, val, checkpoints, launcher, obstacles, name, unresolved,
                                                n_resolved, clock_low, clock_high)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Facts, host, launcher, launched_rank, launched_ranks, slurm_tasks,
                                                pbs_lines, pbs_complaint, pmi, own_launcher, mpi_library, version,
                                                digest, libraries, variables, limits, gpus, temporary,
                                                missing_temporary, has_node, node)

namespace {

// Whether each fraction in `json` fits into an int: converting a larger one is undefined behaviour. Large integers are
// not fractions.
bool is_in_range(const nlohmann::json& json) {
  if (json.is_number_float()) return std::abs(json.get<double>()) < std::numeric_limits<int>::max();
  return !json.is_structured() || std::ranges::all_of(json, is_in_range);
}

}  // namespace

std::string to_text(const Facts& facts) {
  return nlohmann::json(facts).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Facts facts_from_text(std::string_view text) {
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    if (!is_in_range(json)) core::fail_system("cannot read the facts of a rank: a number is too large");
    return json.get<Facts>();
  } catch (const nlohmann::json::exception& error) {
    core::fail_system(std::string{"cannot read the facts of a rank: "} + error.what());
  }
}

}  // namespace lockstep::training::doctor

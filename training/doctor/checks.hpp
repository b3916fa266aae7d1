// The checks of `lockstep doctor`, each a function of what rank 0 knows.
// Invariant: pure; one table in the order of the report; names never change once released.
// Used by doctor.cpp and by tests.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "site/environment_lint.hpp"
#include "training/doctor/job.hpp"

namespace lockstep::training::doctor {

struct Check {
  std::string_view name;
  Finding (*judge)(const Job& job);
};

[[nodiscard]] std::span<const Check> all_checks() noexcept;

// How ranks are started and where they run.
[[nodiscard]] Finding check_launcher(const Job& job);
/// Whether --nproc can start ranks.
[[nodiscard]] Finding check_own_launcher(const Job& job);
[[nodiscard]] Finding check_pmi(const Job& job);
[[nodiscard]] Finding check_binding(const Job& job);
[[nodiscard]] Finding check_quota(const Job& job);
[[nodiscard]] Finding check_gpus(const Job& job);
/// Whether every rank has a GPU that it can use and should use.
[[nodiscard]] bool computes_on_gpus(const Job& job);
[[nodiscard]] Finding check_fabric(const Job& job);

// Settings of nodes.
[[nodiscard]] Finding check_governor(const Job& job);
[[nodiscard]] Finding check_huge_pages(const Job& job);
[[nodiscard]] Finding check_numa_balancing(const Job& job);

// Limits of a process.
[[nodiscard]] Finding check_memory(const Job& job);
[[nodiscard]] Finding check_shared_memory(const Job& job);
[[nodiscard]] Finding check_locked_memory(const Job& job);
[[nodiscard]] Finding check_open_files(const Job& job);
[[nodiscard]] Finding check_stack(const Job& job);
[[nodiscard]] Finding check_core_files(const Job& job);

// Facts that nodes and ranks must agree in.
[[nodiscard]] Finding check_clocks(const Job& job);
[[nodiscard]] Finding check_names(const Job& job);
[[nodiscard]] Finding check_program(const Job& job);
[[nodiscard]] Finding check_libraries(const Job& job);
[[nodiscard]] Finding check_variables(const Job& job);
[[nodiscard]] Finding check_nodes_alike(const Job& job);
[[nodiscard]] Finding check_environment(const Job& job);
/// Variables of one process; an error prevents MPI from starting.
[[nodiscard]] std::vector<site::Finding> slips_in(const std::map<std::string, std::string>& environment,
                                                  site::Fabric fabric);

// Sources of data and destinations of checkpoints.
[[nodiscard]] Finding check_temporary_folder(const Job& job);
[[nodiscard]] Finding check_recipe(const Job& job);
[[nodiscard]] Finding check_data(const Job& job);
[[nodiscard]] Finding check_read_speed(const Job& job);
[[nodiscard]] Finding check_classes(const Job& job);
[[nodiscard]] Finding check_checkpoint_folder(const Job& job);
[[nodiscard]] Finding check_locks(const Job& job);
[[nodiscard]] Finding check_same_folder(const Job& job);
[[nodiscard]] Finding check_room(const Job& job);

}  // namespace lockstep::training::doctor

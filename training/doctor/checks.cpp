#include "training/doctor/checks.hpp"

#include <array>

namespace lockstep::training::doctor {
namespace {

constexpr std::array table{
    Check{"launcher", check_launcher},
    Check{"own launcher", check_own_launcher},
    Check{"pmi", check_pmi},
    Check{"binding", check_binding},
    Check{"cpu quota", check_quota},
    Check{"gpus", check_gpus},
    Check{"fabric", check_fabric},
    Check{"governor", check_governor},
    Check{"huge pages", check_huge_pages},
    Check{"numa balancing", check_numa_balancing},
    Check{"memory", check_memory},
    Check{"/dev/shm", check_shared_memory},
    Check{"locked memory", check_locked_memory},
    Check{"open files", check_open_files},
    Check{"stack", check_stack},
    Check{"core files", check_core_files},
    Check{"temporary files", check_temporary_folder},
    Check{"clocks", check_clocks},
    Check{"host names", check_names},
    Check{"same program", check_program},
    Check{"same libraries", check_libraries},
    Check{"same variables", check_variables},
    Check{"same nodes", check_nodes_alike},
    Check{"environment", check_environment},
    Check{"recipe", check_recipe},
    Check{"data", check_data},
    Check{"read speed", check_read_speed},
    Check{"classes", check_classes},
    Check{"checkpoints", check_checkpoint_folder},
    Check{"file locks", check_locks},
    Check{"same folder", check_same_folder},
    Check{"room", check_room},
};

}  // namespace

std::span<const Check> all_checks() noexcept { return table; }

}  // namespace lockstep::training::doctor

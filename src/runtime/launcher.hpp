// What the process launcher says about this process, before MPI is initialised.
// Invariant: reads the environment only; every field may be unknown and the program must work all the same.
// Used by the programs' main() (who prints, singleton check) and by the watchdog's board (who is who before MPI_Init).
#pragma once

#include <optional>
#include <string>

namespace lockstep::runtime {

/// Facts from Open MPI, MPICH/Hydra, Slurm or PALS variables.
struct LauncherHint {
  std::string name;  ///< "Open MPI mpirun", "Hydra mpiexec", "Slurm srun", "PALS mpiexec"; empty when started by hand
  std::string job_key;  ///< the same for all processes of the job on this node, different for other jobs; never empty
  std::optional<int> rank;
  std::optional<int> n_ranks;
  std::optional<int> local_rank;
  std::optional<int> n_local_ranks;
};

[[nodiscard]] LauncherHint read_launcher_hint();

/// Replaces this process by `mpirun -n n_ranks <this program> argv...` of the MPI it was built with (or $LOCKSTEP_MPIEXEC),
/// with what Open MPI needs as root and, if n_ranks exceeds the cores, for oversubscription. Returns only by throwing.
[[noreturn]] void relaunch_under_mpi(int n_ranks, int argc, char** argv);

}  // namespace lockstep::runtime

// What the process launcher says about this process, before MPI is initialised.
// Invariant: reads the environment only; every field may be unknown and the program must work all the same.
// Used by the programs' main() (who prints, singleton check) and by the watchdog's board (who is who before MPI_Init).
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/units.hpp"

namespace lockstep::runtime {

/// Facts from Open MPI, MPICH/Hydra, Slurm or PALS variables.
struct LauncherHint {
  std::string name;  ///< "Open MPI mpirun", "Hydra mpiexec", "Slurm srun", "PALS mpiexec"; empty when started by hand
  std::string job_key;  ///< the same for all processes of the job on this node, different for other jobs; never empty
  std::optional<int> rank;
  std::optional<int> n_ranks;
  std::optional<int> local_rank;
  std::optional<int> n_local_ranks;
  pid_t launcher = 0;  ///< its process on this node; 0: unknown
};

[[nodiscard]] LauncherHint read_launcher_hint();

/// Returns how many ranks of this node are beyond the first on their processor; 0 if the hint does not say.
[[nodiscard]] int n_sharing_a_processor(const LauncherHint& hint) noexcept;

/// Whether the environment has any sign of a launcher, even one that read_launcher_hint() does not know: then this
/// process may be one of several.
[[nodiscard]] bool is_started_by_others() noexcept;

/// A launcher of another MPI starts processes that each run as a single rank (`n_ranks` of this world is 1); all would
/// do the same work and write the same files. Returns the error to report, or nothing.
[[nodiscard]] std::optional<core::Error> find_singletons(const LauncherHint& hint, int n_ranks);

/// The most ranks that --nproc starts on one machine: a larger number is a typing error.
inline constexpr int most_processes = 4096;

/// Throws core::Error (usage) if --expect-ranks or --nproc contradicts the number of ranks; 0: not given.
void check_n_ranks(int expected, int nproc, int n_ranks);

/// How ranks are started and watched.
struct LaunchOptions {
  int n_threads = 1;            ///< of each
  core::Seconds timeout{};      ///< for a rank to be there; 0: no limit
  bool shows_launcher = false;  ///< also what the launcher says of a job that failed
  /// For a program that saves its state on SIGTERM, SIGHUP, SIGUSR1 or SIGUSR2 and can be rerun: if no rank has begun
  /// by then there is nothing to save, and the exit code is ExitCode::requeue, too.
  bool is_resumable = false;
  const core::Clock* clock = &core::real_clock();  ///< of what is waited for; must outlive this process
};

/// The launcher of the MPI this program was built with, or $LOCKSTEP_MPIEXEC: a path, or a name found in PATH.
[[nodiscard]] std::string own_launcher();

/// Runs `mpirun -n n_ranks <this program> argv...` of the MPI it was built with (or $LOCKSTEP_MPIEXEC), with the
/// settings that Open MPI needs for root and, if n_ranks exceeds the cores, for oversubscription. Ranks are bound to a
/// core each, unless they have more than one thread. Exits with the launcher's exit code, or with ExitCode::system if a
/// signal ended it or stdout could not be written. Known causes of a launcher's crash are reported before it is
/// started, by core::Error (usage or system). The first signal that asks for an end reaches the ranks as SIGUSR1, for
/// an orderly end, and the exit code is then 128 + that signal; ranks have 5 minutes for it, or 15 s if a rank is
/// stopped or none exists. A launcher that starts no rank on this node within the timeout and 10 s more is killed, with
/// ExitCode::stalled. Returns only by throwing.
[[noreturn]] void relaunch_under_mpi(int n_ranks, int argc, char** argv, const LaunchOptions& options);

}  // namespace lockstep::runtime

// How a job script starts ranks: srun, mpirun, mpiexec, what starts processes of PyTorch, or launch of batch/lib.
// Invariant: pure; a word that is not understood is taken for the program.
// Used by job_script and script_lint.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "site/options.hpp"
#include "site/shell.hpp"

namespace lockstep::site {

enum class Launcher { none, srun, mpirun, mpiexec, torchrun, torch_launch, accelerate, deepspeed, launch };

[[nodiscard]] std::string_view name(Launcher launcher);

struct Launch {
  int line = 0;
  Launcher launcher = Launcher::none;
  std::vector<Flag> flags{};           ///< of srun by their long names, of others without dashes
  std::vector<std::string> program{};  ///< and its arguments; empty where a variable holds the launcher alone
  bool is_by_variable = false;         ///< the flags are those of a variable, which is a launch of its own
  bool is_within = false;              ///< another launch starts it
  bool is_background = false;          ///< as Command's
  bool is_in_braces = false;           ///< as Command's
  std::string variable{};              ///< that holds it: "run" of run="srun -n 4"; empty if it is a command
};

/// The launch that `words` are, also behind exec, env, time, timeout, numactl and their like, and assignments; nothing
/// if they are none.
[[nodiscard]] std::optional<Launch> read_launch(std::span<const std::string> words, int line);

/// From the program on: what comes behind exec, env, time, timeout, numactl and their like, and assignments.
[[nodiscard]] std::span<const std::string> unwrapped(std::span<const std::string> words);

/// Whether the program that `words` start, as a path may have it, is called `name`: "numactl -l bin/reduce_all". Of
/// what starts others (nsys, apptainer, ./bind.sh) it is any word after it; variables that are not known are left out.
[[nodiscard]] bool starts(std::span<const std::string> words, std::string_view name);

/// Whether a program or one of its arguments, as a path may have it, is called `name`: "bin/reduce_all".
[[nodiscard]] bool runs(std::span<const std::string> words, std::string_view name);

[[nodiscard]] bool has_word(std::span<const std::string> words, std::string_view word);
/// VALUE of `flag VALUE` or `flag=VALUE`; nothing if `flag` is not there.
[[nodiscard]] std::optional<std::string_view> argument(std::span<const std::string> words, std::string_view flag);
/// srun, mpirun or mpiexec.
[[nodiscard]] bool is_mpi_launcher(Launcher launcher);
/// torchrun, torch.distributed.launch, accelerate launch or deepspeed: starts processes of PyTorch on its node.
[[nodiscard]] bool is_torch(Launcher launcher);
/// srun, mpirun, mpiexec or launch.
[[nodiscard]] bool starts_ranks(const Launch& launch);
/// Returns whether this is a command of the system, which needs no ranks, no MPI and few cores.
[[nodiscard]] bool is_small_command(const Launch& launch);
/// The last of these; nullptr if there is none.
[[nodiscard]] const Flag* flag_of(const Launch& launch, std::initializer_list<std::string_view> names);
/// The value of flag_of(); nothing if it is no number, as where the shell fills it in.
[[nodiscard]] std::optional<long> count_of(const Launch& launch, std::initializer_list<std::string_view> names);

}  // namespace lockstep::site

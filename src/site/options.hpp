// The options of sbatch, srun, qsub, mpirun and torchrun, the resources of PBS, and words as flags with their values.
// Invariant: pure; an unknown option is kept as one, never refused here.
// Used by job_script and script_lint.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "site/forms.hpp"

namespace lockstep::site {

enum class Takes { nothing, maybe, value, two };

/// What reads it: both are sbatch and srun. Resources are of a whole job, of a chunk of select=, or of either.
enum class Of { both, sbatch, srun, qsub, job, chunk, host };

struct Option {
  std::string name{};  ///< "nodes"; of qsub its letter
  char letter = '\0';
  Of of = Of::both;
  Takes takes = Takes::nothing;
  std::string_view form = "text";  ///< of forms.hpp
  std::string_view words{};        ///< of the kind
  bool is_new = false;             ///< Slurm 22.05 does not have it
  std::string_view until{};        ///< the version from which on there is none: "17.11"
  std::string_view instead{};      ///< of one that is gone
};

/// slurm: of sbatch and srun. mpi: of the mpirun and mpiexec of Open MPI, MPICH and PALS, those with values. torch: of
/// torchrun, accelerate launch and deepspeed, those without. resources: of qsub -l and of the chunks of select=.
enum class OptionSet { slurm, qsub, mpi, torch, resources };
[[nodiscard]] const std::vector<Option>& options_of(OptionSet set);
/// By its name; nullptr if there is none.
[[nodiscard]] const Option* find_option(OptionSet set, std::string_view name);

/// Cells of the lines of the table below [`section`]: what options are to each other, to variables, to launchers.
using Rows = std::vector<std::vector<std::string_view>>;
[[nodiscard]] const Rows& option_rows(std::string_view section);
/// The first row of the section whose first cell has the word `name`; nullptr if there is none.
[[nodiscard]] const Rows::value_type* option_row(std::string_view section, std::string_view name);

struct Flag {
  int line = 0;
  std::string typed{};  ///< "-N" or "--nodes"
  std::string name{};   ///< "nodes"; if it is not known, what was typed without dashes
  std::optional<std::string> value{};
  bool is_known = true;

  /// The value; empty if there is none.
  [[nodiscard]] std::string_view text() const noexcept { return value ? std::string_view{*value} : ""; }
};

/// Flags up to the first word that is none; `n_used` words. Slurm takes any unambiguous beginning of a long name.
/// mpirun and torchrun take long names after one dash, and torchrun takes - for _.
[[nodiscard]] std::vector<Flag> read_flags(std::span<const std::string> words, OptionSet set, int line,
                                           std::size_t& n_used);

/// The last of this name; nullptr if there is none.
[[nodiscard]] const Flag* last_of(const std::vector<Flag>& flags, std::string_view name);

}  // namespace lockstep::site

// The options of sbatch, srun and qsub, and words as flags with their values.
// Invariant: pure; an unknown option is kept as one, never refused here.
// Used by job_script and script_lint.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::site {

enum class Takes { nothing, maybe, value };

struct Option {
  std::string name;  ///< "nodes"; of qsub its letter
  char letter = '\0';
  Takes takes = Takes::nothing;
  bool is_of_sbatch = false;
  bool is_of_srun = false;
};

[[nodiscard]] const std::vector<Option>& slurm_options();
[[nodiscard]] const std::vector<Option>& qsub_options();

struct Flag {
  int line = 0;
  std::string typed{};  ///< "-N" or "--nodes"
  std::string name{};   ///< "nodes"; if it is not known, what was typed without dashes
  std::optional<std::string> value{};
  bool is_known = true;
};

/// Flags up to the first word that is none; `n_used` words. Slurm takes any unambiguous beginning of a long name.
[[nodiscard]] std::vector<Flag> read_flags(std::span<const std::string> words, const std::vector<Option>& options,
                                           int line, std::size_t& n_used);

/// The last of this name; nullptr if there is none.
[[nodiscard]] const Flag* last_of(const std::vector<Flag>& flags, std::string_view name);

}  // namespace lockstep::site

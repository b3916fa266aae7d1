// A job script of Slurm or PBS, read: directives, variables it sets, what it launches and loads.
// Invariant: nothing is executed; never throws but for memory, whatever the bytes; lines count from 1.
// Used by script_lint.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "site/environment_lint.hpp"
#include "site/known_values.hpp"
#include "site/launch.hpp"
#include "site/options.hpp"
#include "site/shell.hpp"

namespace lockstep::site {

enum class BatchSystem { none, slurm, pbs };

struct Line {
  int line = 0;
  std::string text{};
};

struct JobScript {
  BatchSystem system = BatchSystem::none;  ///< by its first directive
  bool has_interpreter = false;            ///< begins with #!
  bool has_order_mark = false;             ///< begins with a byte order mark; the rest is read as if it did not
  int dos_line = 0;                        ///< the first that ends in CR; 0: none
  bool is_heterogeneous = false;           ///< has components: "#SBATCH hetjob" between them
  std::vector<Flag> directives{};          ///< those that the batch system reads
  std::vector<Flag> late{};                ///< after the first command: it does not read them
  std::vector<Flag> of_other{};            ///< of another batch system than the first
  std::vector<Line> stray{};               ///< words of directives that belong to no flag; of PBS also "# comment"
  std::vector<Command> commands{};
  std::vector<Variable> variables{};   ///< in the order of the text, exported or not; a list keeps its parentheses
  std::vector<Variable> unexported{};  ///< those of them that no command gets
  KnownValues known{};                 ///< of them; not those that hold launchers
  std::vector<Launch> launches{};      ///< with srun torchrun both; known variables filled in
  std::vector<Line> comments{};        ///< lines that are nothing else, directives left out
  Unread unread{};                     ///< its odd characters with those of directives
};

[[nodiscard]] JobScript read_job_script(std::string_view text);

/// The last directive of this name that the batch system reads; nullptr if there is none.
[[nodiscard]] const Flag* directive(const JobScript& script, std::string_view name);

/// S of the first lib/S.sh that it sources, as those of batch/lib; empty if it sources none.
[[nodiscard]] std::string_view sourced_library(const JobScript& script);

/// VALUE of the first comment line "# lockstep: KEY=VALUE" or "# lockstep: KEY VALUE"; nothing if there is none.
[[nodiscard]] std::optional<Line> find_mark(const JobScript& script, std::string_view key);

}  // namespace lockstep::site

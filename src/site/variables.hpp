// The environment variables that steer a parallel job, and what they may be set to.
// Invariant: a name or value is called wrong only where the table is sure; what it does not know passes.
// Used by environment_lint, script_lint and lockstep doctor; variable_table.txt holds the facts.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::site {

/// The variables that one library reads, and that begin alike.
struct Family {
  struct Rule {
    std::string_view name;  ///< "*_ENABLE": all known ones that end so
    std::string_view form;  ///< of forms.hpp; or "like": the words are what the other batch system has
    std::string_view words;
  };

  std::string_view prefix;
  std::string_view reader;                ///< "NCCL"
  bool is_open = false;                   ///< has members that the table does not know
  std::vector<std::string_view> names{};  ///< without the prefix, as all below
  std::vector<std::string_view> beginnings{};
  std::vector<Rule> rules{};
  std::vector<std::pair<std::string_view, std::string_view>> misnomers{};  ///< wrong, right
};

/// All of the table.
[[nodiscard]] const std::vector<Family>& families();

/// The family that the name belongs to by its prefix; nullptr if none.
[[nodiscard]] const Family* family_of(std::string_view name);

[[nodiscard]] bool is_known_variable(std::string_view name);

/// All that are in the table, with their prefixes.
[[nodiscard]] std::vector<std::string> known_variables();

/// The right name of one that is often mistaken, or has the words of a known one in another order.
[[nodiscard]] std::optional<std::string> right_name(std::string_view name);

/// The known name that `name`, which is none, is one or two letters off.
[[nodiscard]] std::optional<std::string> near_variable(std::string_view name);

/// What the other batch system has instead of a variable of Slurm or PBS; empty if the table does not say.
[[nodiscard]] std::string_view named_elsewhere(std::string_view name);

/// What the variable takes instead of `value`; empty if it takes that or the table cannot tell.
[[nodiscard]] std::string expected_instead(std::string_view name, std::string_view value);

}  // namespace lockstep::site

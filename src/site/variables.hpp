// The environment variables that steer a parallel job, and what they may be set to.
// Invariant: a name or value is called wrong only where the table is sure; what it does not know passes.
// Used by environment_lint.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "site/variable_names.hpp"

namespace lockstep::site {

/// The family that the name belongs to by its prefix; nullptr if none.
[[nodiscard]] const Family* family_of(std::string_view name) noexcept;

[[nodiscard]] bool is_known_variable(std::string_view name);

/// All that are in the table, with their prefixes.
[[nodiscard]] std::vector<std::string> known_variables();

/// A name that is in use although nothing reads it.
struct Misnomer {
  std::string_view wrong;
  std::string_view right;
};
/// The right name of one that is often mistaken, or has the words of a known one in another order.
[[nodiscard]] std::optional<std::string> right_name(std::string_view name);

/// The known name that `name`, which is none, is one or two letters off.
[[nodiscard]] std::optional<std::string> near_variable(std::string_view name);

/// What the variable takes instead of `value`; nothing if it takes that or the table cannot tell.
[[nodiscard]] std::optional<std::string> expected_instead(std::string_view name, std::string_view value);

}  // namespace lockstep::site

// Settings that are right each by itself and wrong together.
// Invariant: pure; each rule is one function and gives its reason.
// Used by environment_lint.
#pragma once

#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "site/environment_lint.hpp"

namespace lockstep::site {

/// The variables by name; of several of one name the last.
class Settings {
 public:
  explicit Settings(std::span<const Variable> variables);

  /// nullptr if it is not set.
  [[nodiscard]] const Variable* find(std::string_view name) const;
  /// Empty if it is not set.
  [[nodiscard]] std::string_view value(std::string_view name) const;
  /// Whether it is set and means yes: "1", "true", ...
  [[nodiscard]] bool is_on(std::string_view name) const;
  /// The first in the order of names; nullptr if none begins so.
  [[nodiscard]] const Variable* find_beginning(std::string_view prefix) const;

 private:
  std::map<std::string_view, const Variable*> by_name_;
};

[[nodiscard]] std::vector<Finding> find_contradictions(const Settings& settings, Fabric fabric);

}  // namespace lockstep::site

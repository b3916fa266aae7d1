// What the nodes of a job tell one another of a stall: a file of each in a folder that all see.
// Invariant: nothing waits for a file system that hangs; a file appears whole.
// Used by watchdog.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/watch/stall.hpp"

namespace lockstep::runtime {

/// Of one process in each line; those that were never there, too.
[[nodiscard]] std::string to_text(const std::vector<Finding>& findings);
/// Nothing if it is no text of to_text().
[[nodiscard]] std::optional<std::vector<Finding>> parse_findings(std::string_view text);

/// Puts `findings` of this node into `folder`. Does nothing if it cannot.
void testify(const std::string& folder, const std::string& host, const std::vector<Finding>& findings) noexcept;
/// What other nodes than `host` have put there.
[[nodiscard]] std::vector<Finding> hear_others(const std::string& folder, const std::string& host) noexcept;

/// Before a job begins: removes what an earlier one has put there.
void forget_testimonies(const std::string& folder) noexcept;

}  // namespace lockstep::runtime

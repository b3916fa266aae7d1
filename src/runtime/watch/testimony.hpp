// The reports of a job's nodes to one another about a stall: each writes a file into a folder that all see.
// Invariant: nothing waits for a file system that hangs; a file appears only when complete.
// Used by watchdog.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/watch/stall.hpp"

namespace lockstep::runtime {

/// One process per line, including those that never arrived.
[[nodiscard]] std::string to_text(const std::vector<Finding>& findings);
/// Returns nothing if the text is not from to_text().
[[nodiscard]] std::optional<std::vector<Finding>> parse_findings(std::string_view text);

/// Writes `findings` of this node into `folder`. Does nothing if that fails.
void testify(const std::string& folder, const std::string& host, const std::vector<Finding>& findings) noexcept;
/// The findings of all nodes except `host`.
[[nodiscard]] std::vector<Finding> hear_others(const std::string& folder, const std::string& host) noexcept;

/// Called before a job begins: removes the files of an earlier job.
void forget_testimonies(const std::string& folder) noexcept;

}  // namespace lockstep::runtime

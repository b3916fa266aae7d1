// Numbers of logical processors in the kernel's list format: "0-3,8".
// Invariant: in ascending order, each once.
// Used by topology.cpp, and for the processors near a GPU.
#pragma once

#include <string>
#include <vector>

namespace lockstep::runtime {

[[nodiscard]] std::string format_processors(const std::vector<int>& processors);
/// Skips text that is not a number.
[[nodiscard]] std::vector<int> parse_processors(const std::string& text);
[[nodiscard]] bool have_common(const std::vector<int>& one, const std::vector<int>& other);

}  // namespace lockstep::runtime

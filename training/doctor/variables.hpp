// Environment variables that a job should set alike on all ranks.
// Invariant: reads only those of an allow-list, and never a secret.
// Used by collect.cpp and the checks.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace lockstep::training::doctor {

/// Settings of MPI, network, threads and batch system.
[[nodiscard]] bool is_looked_at(std::string_view variable);
/// Whether it identifies a rank or node, and so differs on purpose.
[[nodiscard]] bool is_of_rank(std::string_view variable);

[[nodiscard]] std::map<std::string, std::string> read_variables();

}  // namespace lockstep::training::doctor

// The variables of the environment that a job should set alike on all ranks.
// Invariant: only those of an allow-list are looked at, and never a secret.
// Used by collect.cpp and the checks.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace lockstep::training::doctor {

/// Settings of MPI, network, threads and batch system.
[[nodiscard]] bool is_looked_at(std::string_view variable);
/// Whether it tells a rank or node who it is, and so differs by intent.
[[nodiscard]] bool is_of_rank(std::string_view variable);

[[nodiscard]] std::map<std::string, std::string> read_variables();

}  // namespace lockstep::training::doctor

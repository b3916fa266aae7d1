// The report of all checks: a table for people, a document for programs.
// Invariant: both have the same content, in the order of the checks.
// Used by doctor.cpp and by tests.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "training/doctor/finding.hpp"
#include "training/doctor/job.hpp"

namespace lockstep::training::doctor {

struct Judged {
  std::string_view name;
  Finding finding{};
};

[[nodiscard]] std::vector<Judged> judge_all(const Job& job);

/// Whether a job would fail.
[[nodiscard]] bool would_fail(const std::vector<Judged>& all) noexcept;

/// The table, and its last line, "31 checks: 20 ok, 2 notes, 1 warning, 0 would fail, 8 not checked".
[[nodiscard]] std::string describe(const std::vector<Judged>& all);

/// The document of share/schemas/doctor-1.schema.json.
[[nodiscard]] std::string to_json(const std::vector<Judged>& all, const Job& job);

}  // namespace lockstep::training::doctor

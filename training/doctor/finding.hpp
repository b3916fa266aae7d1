// The result of a check of `lockstep doctor`.
// Invariant: every result that is not ok has a fix; a check that cannot be made is skipped, and `seen` says why.
// Used by the checks and by the report.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::training::doctor {

enum class Verdict {
  skipped,  ///< not checked
  ok,
  note,     ///< worth knowing
  warning,  ///< works, but slower or not as meant
  fail      ///< a job would fail
};
inline constexpr std::array all_verdicts{Verdict::skipped, Verdict::ok, Verdict::note, Verdict::warning, Verdict::fail};
[[nodiscard]] std::string_view name(Verdict verdict) noexcept;

struct Finding {
  Verdict verdict = Verdict::ok;
  std::string seen{};
  std::string fix{};

  bool operator==(const Finding&) const = default;
};

/// Returns "not checked: " and why.
[[nodiscard]] Finding skip(std::string_view why);

/// A value of a node or rank, with the name of its place.
template <class Value>
using Placed = std::vector<std::pair<std::string, Value>>;

/// Returns "always" if all have it; else "always on a, b; never on c, d, e and 5 others". Shows only the first of many
/// values.
[[nodiscard]] std::string describe(const Placed<std::string>& values);

/// One finding for all: the worst verdict and its fix; what was seen, by place if places differ, the worst first.
[[nodiscard]] Finding merge(Placed<Finding> findings);

}  // namespace lockstep::training::doctor

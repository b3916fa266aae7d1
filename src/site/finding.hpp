// What is found wrong in an environment or a job script.
// Invariant: what is wrong comes with the reason why it matters and with a remedy.
// Used by the checks of this folder and by those who show them.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace lockstep::site {

enum class Severity {
  error,    ///< the job fails, or does not do what it says
  warning,  ///< it may work, but slower or not as meant
  note      ///< worth knowing; nothing needs to be done
};
inline constexpr std::array all_severities{Severity::error, Severity::warning, Severity::note};

[[nodiscard]] constexpr std::string_view name(Severity severity) noexcept {
  constexpr std::array<std::string_view, 3> names{"error", "warning", "note"};
  return names[static_cast<std::size_t>(severity)];
}

/// error or warning by their names, note by any other.
[[nodiscard]] constexpr Severity severity_named(std::string_view word) noexcept {
  return word == "error" ? Severity::error : word == "warning" ? Severity::warning : Severity::note;
}

struct Finding {
  Severity severity = Severity::note;
  std::string what{};  ///< "unknown variable NCCL_DISABLE_IB"
  std::string why{};   ///< "NCCL reads NCCL_IB_DISABLE and nothing complains about the other"; may be empty
  std::string fix{};   ///< "NCCL_IB_DISABLE"; may be empty
  int line = 0;        ///< of the file it was found in, from 1; 0: in no file

  bool operator==(const Finding&) const = default;
};

}  // namespace lockstep::site

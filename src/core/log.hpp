// Logging to stderr, one line per message, prefixed with the rank once it is known.
// Invariant: only rank 0 logs information; warnings and errors of other ranks carry their rank and host.
// Used by every folder above core; never used for results.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::core {

/// Call once when rank and host are known; before that, messages carry no prefix.
void set_log_identity(int rank, const std::string& host);

void log_info(std::string_view message);     ///< shown from rank 0 only
void log_warning(std::string_view message);  ///< shown from any rank
void log_error(std::string_view message);    ///< shown from any rank

}  // namespace lockstep::core

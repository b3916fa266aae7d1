// Results on stdout, at once and in full.
// Invariant: text that does not get out, as on a full disk, is an error and not a silence.
// Used by reduce_all.
#pragma once

#include <string_view>

namespace lockstep::core {

/// So that a reader behind a pipe sees every line when it is done. Throws core::Error (system) if stdout refuses.
void print(std::string_view text);

}  // namespace lockstep::core

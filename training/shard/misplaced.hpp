// Flags that only some kinds of a verb accept.
// Invariant: a flag that would be ignored is refused instead.
// Used by import and synth.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/flags.hpp"

namespace lockstep::training::shard {

struct FlagUse {
  std::string_view flag;
  std::string_view kinds;  ///< words, separated by spaces
};

[[nodiscard]] bool is_for(const FlagUse& use, std::string_view kind);

/// Throws core::Error (usage) if a flag was typed that `kind` does not accept.
void refuse_misplaced(const core::Flags& flags, std::span<const FlagUse> uses, const std::string& kind);

}  // namespace lockstep::training::shard

// Commands whose first argument is a verb, such as lockstep shard VERB and lockstep ckpt VERB.
// Invariant: the help of a verb lists its flags as they are declared.
// Used by these commands, each a folder with a file for each verb.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "training/command.hpp"

namespace lockstep::training {

struct Verb {
  std::string_view name;
  std::string_view summary;               ///< one line for --help
  std::string_view usage;                 ///< after the command, without its flags
  Action (*declare)(core::Flags& flags);  ///< with its help
  /// Returns the beginning of the help for one KIND, and hides what is only for others; throws if there is none.
  std::string (*narrow_help)(std::string_view kind, core::Flags& flags) = nullptr;
};

struct VerbCommand {
  std::string_view name;   ///< "lockstep shard"
  std::string_view about;  ///< its help, before the verbs
  std::string_view note;   ///< after the verbs
  std::span<const Verb> verbs;
};

/// `arguments` after the command's name. Throws core::Error (usage).
[[nodiscard]] Invocation parse_verb(const VerbCommand& command, const std::vector<std::string>& arguments);

}  // namespace lockstep::training

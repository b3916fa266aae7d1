#include "training/verb.hpp"

#include <fmt/format.h>

#include "core/suggest.hpp"

namespace lockstep::training {
namespace {

std::string help_text(const VerbCommand& command) {
  std::string text = fmt::format("{}\nVerbs\n", command.about);
  for (const Verb& verb : command.verbs) text += fmt::format("  {:<8} {}\n", verb.name, verb.summary);
  return text + fmt::format("\n{} VERB --help explains the flags of a verb.{}", command.name, command.note);
}

/// The help of the verb, or of the KIND that is named before any flag.
std::string help_of(const VerbCommand& command, const Verb& verb, const std::vector<std::string>& arguments) {
  core::Flags flags{""};
  static_cast<void>(verb.declare(flags));
  Invocation launch;
  declare_launch(flags, launch);
  const bool names_kind = verb.narrow_help != nullptr && !arguments.front().starts_with('-');
  const std::string beginning = names_kind ? verb.narrow_help(arguments.front(), flags) : "";
  return fmt::format("{} {} [flags]: {}\n\n{}{}  -h, --help\n", command.name, verb.usage, verb.summary, beginning,
                     flags.help());
}

}  // namespace

Invocation parse_verb(const VerbCommand& command, const std::vector<std::string>& arguments) {
  if (arguments.empty())
    core::fail_usage({.what = "a verb is missing",
                      .where = std::string{command.name},
                      .expected = "one of " + core::join(core::names_of(command.verbs)),
                      .fix = fmt::format("{} --help explains them", command.name)});
  const std::string& word = arguments.front();
  if (word == "-h" || word == "--help" || word == "help") return {.text = help_text(command)};
  const Verb& verb = core::find_named(command.verbs, word, "verb", std::string{command.name});
  const std::vector<std::string> rest{arguments.begin() + 1, arguments.end()};
  if (asks_for_help(rest)) return {.text = help_of(command, verb, rest)};
  return make_invocation(fmt::format("{} {} [flags]", command.name, verb.usage), verb.declare, rest);
}

}  // namespace lockstep::training

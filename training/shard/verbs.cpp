#include "training/shard/verbs.hpp"

#include "core/suggest.hpp"

namespace lockstep::training::shard {
namespace {

std::string help_text() {
  std::string text = R"(lockstep shard: data sets as folders of HDF5 shards

A set is a folder with a manifest and shards that any HDF5 program can read; every byte is covered by a check sum.

  lockstep shard import mnist downloads/mnist --out m    a known format to shards
  lockstep shard synth digits --out d --samples 60000    or data made from a seed
  lockstep shard stat d                                  splits, shapes, classes, sizes
  lockstep shard verify d                                is every byte right?
  lockstep shard bench d --nproc 2 --batch 64            how fast can a trainer read it?

Verbs
)";
  for (const Verb& verb : verbs) text += fmt::format("  {:<8} {}\n", verb.name, verb.summary);
  text += R"(
lockstep shard VERB --help explains the flags of a verb. All take --nproc N to work with N ranks on this machine, and
give the same bytes for any number of ranks; all need little memory, whatever the size of the set.
)";
  return text;
}

/// Of the verb, or of the KIND that is named before any flag.
std::string help_of(const Verb& verb, const std::vector<std::string>& arguments) {
  const bool names_kind = verb.help_of_kind != nullptr && !arguments.front().starts_with('-');
  return fmt::format(
      "lockstep shard {} [flags]: {}\n\n{}      --nproc N          start N ranks on this machine\n"
      "      --verbose          with --nproc: also what the launcher says about a job that failed\n"
      "      --timeout T        name a rank that is stopped or gone, and end, after T; 0: never    (300s)\n"
      "  -h, --help\n",
      verb.usage, verb.summary, names_kind ? verb.help_of_kind(arguments.front()) : verb.help());
}

}  // namespace

Invocation parse(const std::vector<std::string>& arguments) {
  if (arguments.empty())
    core::fail_usage({.what = "a verb is missing",
                      .where = "lockstep shard",
                      .expected = "one of " + core::join(core::names_of(verbs)),
                      .fix = "lockstep shard --help explains them"});
  const std::string& word = arguments.front();
  if (word == "-h" || word == "--help" || word == "help") return {.text = help_text()};
  const Verb& verb = core::find_named(verbs, word, "verb", "lockstep shard");
  const std::vector<std::string> rest{arguments.begin() + 1, arguments.end()};
  if (asks_for_help(rest)) return {.text = help_of(verb, rest)};
  return make_invocation(fmt::format("lockstep shard {} [flags]", verb.usage), verb.declare, rest);
}

}  // namespace lockstep::training::shard

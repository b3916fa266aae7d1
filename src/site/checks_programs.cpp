#include <fmt/format.h>

#include <algorithm>

#include "core/suggest.hpp"
#include "site/checks.hpp"
#include "site/text.hpp"

namespace lockstep::site {
namespace {

using Call = std::span<const std::string>;

const std::vector<std::string>& commands_of_lockstep() {
  static const std::vector<std::string> names{"train", "shard", "ckpt", "doctor", "lint"};  // training/command.cpp
  return names;
}

bool is_program(Call call, std::string_view name) { return !call.empty() && file_name(call.front()) == name; }

/// The word after lockstep, if it is one and no variable or flag.
std::string_view command_of(Call call) {
  if (!is_program(call, "lockstep") || call.size() < 2) return {};
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  return std::ranges::all_of(call[1], is_letter) ? std::string_view{call[1]} : std::string_view{};
}

void check_command(Call call, int line, const Look& look) {
  const std::string_view word = command_of(call);
  const auto& names = commands_of_lockstep();
  if (word.empty() || word == "help" || std::ranges::find(names, word) != names.end()) return;
  const std::string meant = did_you_mean(word, names);
  look.error(line, fmt::format("lockstep has no command '{}'", word), "it stops at once",
             meant.empty() ? "one of " + core::join(names) : meant);
}

/// Programs start ranks by --nproc only where no launcher has.
void check_nproc(const Launch& launch, Call call, const Look& look) {
  if (!is_program(call, "reduce_all") && !is_program(call, "lockstep")) return;
  const auto asked = argument(call, "--nproc");
  if (!starts_ranks(launch) || !asked) return;
  const auto ranks = ranks_of(launch, look);
  const bool agrees = ranks && *asked == std::to_string(*ranks);
  look.add(agrees ? Severity::warning : Severity::error, launch.line,
           fmt::format("--nproc {} in a launch by {}", *asked, name(launch.launcher)),
           "the launcher already starts the ranks: with another number of them the program stops at once",
           "use --expect-ranks instead");
}

/// What works on all ranks of a job; other commands do on one.
bool needs_ranks(Call call) {
  constexpr std::string_view alone = "--nproc --help -h --version --list --now --dry-run --replay --verify-resume";
  for (const std::string_view flag : split_words(alone))
    if (argument(call, flag)) return false;
  return is_program(call, "reduce_all") || command_of(call) == "train";
}

void check_alone(Call call, int line, const Look& look) {
  const auto& ranks = look.request.ranks;
  if (!needs_ranks(call) || !ranks || ranks->value < 2 || look.script.known.leaves_unknown(call)) return;
  const std::string_view program = is_program(call, "lockstep") ? "lockstep train" : "reduce_all";
  look.error(line, fmt::format("{} without a launcher in a job of {} ranks", program, ranks->value),
             "it runs as one rank, and the rest of the job is idle",
             "put srun, mpirun or mpiexec before it, as the cluster has it; on one node --nproc also works");
}

}  // namespace

void check_programs(const Look& look) {
  for (const Launch& launch : look.script.launches) {
    if (!launch.variable.empty()) continue;
    const Call call = unwrapped(launch.program);
    check_command(call, launch.line, look);
    check_nproc(launch, call, look);
  }
  KnownValues known = look.script.known;
  for (const Command& command : look.script.commands) {
    const std::vector<std::string> words = known.fill_in(command.words);
    const Call call = unwrapped(words);
    check_command(call, command.line, look);
    check_alone(call, command.line, look);
  }
}

}  // namespace lockstep::site

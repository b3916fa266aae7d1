// Our own programs, as the script calls them: behind a launcher, or alone.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/suggest.hpp"
#include "site/checks.hpp"

namespace lockstep::site {
namespace {

using Call = std::span<const std::string>;

const std::vector<std::string>& commands_of_lockstep() {
  static const std::vector<std::string> names{"train", "shard", "ckpt", "doctor", "lint"};  // training/command.cpp
  return names;
}

bool is_program(Call call, std::string_view name) {
  const std::string_view path = call.empty() ? std::string_view{} : std::string_view{call.front()};
  return path.substr(path.find_last_of('/') + 1) == name;  // npos + 1 is 0
}

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
  const auto near = core::near_miss(word, names);
  look.error(line, fmt::format("lockstep has no command '{}'", word), "it ends at once",
             near ? fmt::format("did you mean {}?", *near) : "one of " + core::join(names));
}

/// Programs start ranks by --nproc only where no launcher has.
void check_nproc(const Launch& launch, Call call, const Look& look) {
  if (!is_program(call, "reduce_all") && !is_program(call, "lockstep")) return;
  if (!starts_ranks(launch) || !has_argument(call, "--nproc")) return;
  const std::string_view asked = argument(call, "--nproc");
  const auto ranks = ranks_of(launch, look);
  const bool agrees = ranks && asked == std::to_string(*ranks);
  look.add(agrees ? Severity::warning : Severity::error, launch.line,
           fmt::format("--nproc {} in a launch by {}", asked, name(launch.launcher)),
           "the launcher starts the ranks already: unless there are as many, the program ends at once",
           "--expect-ranks in its place");
}

/// What works on all ranks of a job; other commands do on one.
bool needs_ranks(Call call) {
  constexpr std::array<std::string_view, 9> alone{"--nproc", "--help",    "-h",       "--version",      "--list",
                                                  "--now",   "--dry-run", "--replay", "--verify-resume"};
  if (std::ranges::any_of(alone, [call](std::string_view flag) { return has_argument(call, flag); })) return false;
  return is_program(call, "reduce_all") || command_of(call) == "train";
}

void check_alone(Call call, int line, const Look& look) {
  const auto& ranks = look.request.ranks;
  const bool is_train = command_of(call) == "train";
  if (!needs_ranks(call) || !ranks || ranks->value < 2 || look.script.known.leaves_unknown(call)) return;
  look.error(line,
             fmt::format("{} without a launcher in a job of {} ranks", is_train ? "lockstep train" : "reduce_all",
                         ranks->value),
             "it runs as one rank, and the rest of the job stands idle",
             "srun, mpirun or mpiexec before it, as the cluster has it; on one node also --nproc");
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

#include <fmt/format.h>

#include <algorithm>

#include "site/checks.hpp"
#include "site/text.hpp"

namespace lockstep::site {
namespace {

struct Trap {
  std::string_view signal;
  int line;
  bool ignores;  ///< trap '' USR1
};

std::vector<Trap> traps_of(const JobScript& script) {
  std::vector<Trap> traps;
  for (const Command& command : script.commands) {
    const auto& words = command.words;
    if (words[0] != "trap" || words.size() < 3 || (words[1].starts_with('-') && words[1] != "--")) continue;
    const std::size_t handler = words[1] == "--" ? 2 : 1;
    for (std::size_t i = handler + 1; i < words.size(); ++i)
      if (const std::string_view name = signal_name(words[i]); !name.empty())
        traps.push_back({name, command.line, words[handler].empty()});
  }
  return traps;
}

/// One of `names`, which have white space between.
bool runs_command(const JobScript& script, std::string_view names) {
  return std::ranges::any_of(script.commands,
                             [names](const Command& command) { return is_one_of(command.words[0], names); });
}

/// A launch that takes time, and is not within another.
bool is_long(const Launch& launch) {
  return launch.variable.empty() && !launch.is_within && launch.launcher != Launcher::launch &&
         !is_small_command(launch) && !launch.is_in_braces;
}

/// --signal=[B:]USR1@300: without B: steps get it and the script does not, with B: the other way round.
void check_signal(const std::vector<Trap>& traps, const Look& look) {
  const Flag* const flag = directive(look.script, "signal");
  const auto asked = flag != nullptr ? read_signal(flag->text()) : std::nullopt;
  if (!asked) return;
  const double seconds = 60 * value_or(look.request.minutes, 0.0);  // 0: no limit
  if (seconds > 0 && static_cast<double>(asked->seconds) >= seconds)
    look.warning(flag->line, fmt::format("{} {} in a job of {:.0f} seconds", flag->typed, flag->text(), seconds),
                 "the signal comes as soon as the job starts", fmt::format("less than {:.0f} seconds", seconds));
  const Trap* const trap = find_by(traps, asked->name, &Trap::signal);
  const bool ends_shell = asked->name != "CONT" && asked->name != "URG";
  if (asked->is_to_shell && trap == nullptr && ends_shell && !runs_command(look.script, ". source eval exec"))
    look.error(flag->line, fmt::format("{} {} without a trap for {}", flag->typed, flag->text(), asked->name),
               "the signal ends the script, and with it the job: no program gets the signal",
               fmt::format("trap HANDLER {0}, then srun ... & and wait; or remove B:, if the program handles {0}",
                           asked->name));
  if (!asked->is_to_shell && trap != nullptr && !trap->ignores)
    look.error(trap->line, fmt::format("{} {} does not reach the trap for {}", flag->typed, flag->text(), asked->name),
               "without B: Slurm signals the programs that srun has started, and not the script",
               fmt::format("--signal=B:{}", flag->text()));
}

/// bash runs a trap once the command in the foreground has ended; wait returns at once.
void check_foreground(const std::vector<Trap>& traps, const Look& look) {
  const Trap* const trap = find_by(traps, false, &Trap::ignores);
  if (trap == nullptr) return;
  for (const Launch& launch : look.script.launches)
    if (is_long(launch) && !launch.is_background && launch.line > trap->line)
      return look.error(
          launch.line,
          fmt::format("{} in the foreground, after the trap of line {}", name(launch.launcher), trap->line),
          "bash runs a trap only after that command has ended", "put & behind it, and then wait");
}

/// What runs in the background ends with the script.
void check_wait(const Look& look) {
  const auto& launches = look.script.launches;
  const auto last = std::find_if(launches.rbegin(), launches.rend(), is_long);
  if (last == launches.rend() || !last->is_background || look.script.directives.empty()) return;
  const auto may_take_time = [last](const Command& command) {
    return command.line > last->line && !is_one_of(command.words[0], "done fi esac echo printf date exit");
  };
  if (std::ranges::any_of(look.script.commands, may_take_time) || runs_command(look.script, "wait")) return;
  look.error(last->line, fmt::format("{} in the background, and no wait after it", name(last->launcher)),
             "the job ends with its script, and so does all that the script has started", "wait");
}

bool requeues(std::span<const std::string> words) {
  const bool is_slurm = starts(words, "scontrol") && (has_word(words, "requeue") || has_word(words, "requeuehold"));
  return is_slurm || starts(words, "qrerun");
}

/// The first command that puts the job back into the queue, by itself or in a text for a shell; nullptr: there is none.
const Command* find_requeue(const JobScript& script) {
  const auto is_in = [](const std::string& text) {
    return std::ranges::any_of(read_commands(text), requeues, &Command::words);
  };
  const auto is_it = [is_in](const Command& command) {
    const bool has_text = is_one_of(file_name(command.words[0]), "trap eval exec bash sh ssh srun timeout nohup");
    return requeues(command.words) || (has_text && std::ranges::any_of(command.words, is_in));
  };
  return find_by(script.commands, true, is_it);
}

void check_requeue(const Look& look) {
  const Flag* const never = directive(look.script, look.is_pbs() ? "r" : "no-requeue");
  const Flag* const again = directive(look.script, "requeue");
  const Command* const command = find_requeue(look.script);
  if (command == nullptr || never == nullptr || (look.is_pbs() && never->text() != "n")) return;
  if (again != nullptr && again > never) return;  // both are of one list
  look.error(command->line,
             fmt::format("{} in a job with {} of line {}", look.is_pbs() ? "qrerun" : "scontrol requeue", never->typed,
                         never->line),
             "such a job does not go back into the queue", look.is_pbs() ? "#PBS -r y" : "#SBATCH --requeue");
}

bool trains(const JobScript& script) {
  return std::ranges::any_of(script.launches, [](const Launch& launch) {
    return runs(launch.program, "lockstep") && has_word(launch.program, "train");
  });
}

void check_preemption(const Look& look) {
  if (!trains(look.script) || look.script.directives.empty()) return;
  if (runs_command(look.script, "end_job qsub sbatch") || find_requeue(look.script) != nullptr) return;
  const Flag* const again = directive(look.script, look.is_pbs() ? "r" : "requeue");
  const bool is_again = again != nullptr && (!look.is_pbs() || again->text() == "y");
  if (is_again || directive(look.script, "signal") != nullptr) return;
  look.warning(
      look.script.directives.front().line,
      look.is_pbs() ? "lockstep train in a job without #PBS -r y"
                    : "lockstep train in a job without --requeue and without --signal",
      "a job that is preempted or reaches its time limit ends there, and nothing resumes it",
      look.is_pbs() ? "#PBS -r y" : "#SBATCH --requeue, #SBATCH --signal=USR1@300, and lockstep train --resume auto");
}

}  // namespace

void check_signals(const Look& look) {
  const std::vector<Trap> traps = traps_of(look.script);
  check_signal(traps, look);
  check_foreground(traps, look);
  check_wait(look);
  check_requeue(look);
  check_preemption(look);
}

}  // namespace lockstep::site

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/characters.hpp"
#include "core/suggest.hpp"
#include "site/checks.hpp"
#include "site/text.hpp"

namespace lockstep::site {
namespace {

constexpr std::string_view placeholder_of_templates = "CHANGE_ME";

std::string_view prefix_of(BatchSystem system) { return system == BatchSystem::pbs ? "#PBS" : "#SBATCH"; }

/// "<code>", "your-account-name", "change-me", "XXXX".
bool is_placeholder(std::string_view value) {
  const auto has = [value](std::string_view part) { return contains_ignoring_case(value, part); };
  return std::ranges::any_of(split_words(option_rows("placeholders")[0][0]), has);
}

void check_placeholder(const Flag& flag, const Look& look) {
  if (!is_one_of(flag.name, "account qos partition mail-user reservation A q")) return;
  const bool is_mail = flag.name == "mail-user";
  if (flag.text() == placeholder_of_templates)
    look.note(flag.line, fmt::format("edit this line: {} is still {}", flag.typed, flag.text()));
  else if (is_placeholder(flag.text()))
    look.add(is_mail ? Severity::warning : Severity::error, flag.line,
             fmt::format("{} is still '{}'", flag.typed, flag.text()), is_mail ? "mail reaches nobody" : refused,
             fmt::format("edit line {}: {} {} with your own", flag.line, prefix_of(look.script.system), flag.typed));
}

void check_places(const Look& look) {
  const std::string_view prefix = prefix_of(look.script.system);
  for (const Flag& flag : look.script.late)
    look.error(flag.line, fmt::format("{} {} after the first command", prefix, flag.typed),
               "the batch system reads no directives from there on", "move it above the first command");
  for (const Flag& flag : look.script.of_other)
    look.warning(flag.line, fmt::format("a directive for another batch system in a script with {} lines", prefix),
                 "which of the two counts depends on how the job is submitted", "remove it");
}

void check_stray(const Look& look) {
  for (const Line& word : look.script.stray) {
    if (look.has_lookalike(word.line)) continue;
    if (word.text.starts_with('#'))
      look.error(word.line, fmt::format("'{}' is no comment to qsub", word.text),
                 "qsub reads all of the line after #PBS as options and refuses the job (directive error)",
                 "put the comment on a line of its own");
    else
      look.error(word.line, fmt::format("'{}' belongs to no option", word.text),
                 "the batch system takes it for a file or refuses the job",
                 look.is_pbs() ? "write -N VALUE, with no blank in the value" : "write --option=value");
  }
}

/// Curly quotes, long dashes and blanks as web pages and word processors write them.
void check_lookalikes(const Look& look) {
  int told = 0;
  for (const OddCharacter& odd : look.script.unread.odd) {
    const Lookalike* const found = find_lookalike(odd.code);
    if (found == nullptr || odd.line == std::exchange(told, odd.line)) continue;
    const std::string_view meant = found->meant;
    const bool may_be_meant = is_one_of(meant, "' \"") && !look.is_directive(odd.line);
    look.add(may_be_meant ? Severity::warning : Severity::error, odd.line,
             fmt::format("{} ({})", core::name_of(odd.code), found->name),
             meant.empty() ? "it is invisible, and part of its word"
                           : fmt::format("it looks like {} but is another character", meant),
             fmt::format("{}: text copied from a web page often has it",
                         meant.empty() ? "remove it" : fmt::format("type {}", meant)));
  }
}

/// "#SABTCH --nodes=2" and "# SBATCH --nodes=2" are comments to the batch system. "# #SBATCH" is switched off.
void check_comments(const Look& look) {
  for (const Line& comment : look.script.comments) {
    const std::string_view text = trim(comment.text);
    const auto words = split_words(text.substr(1, 200));
    if (words.size() < 2 || !words[1].starts_with('-') || words[0].starts_with('#')) continue;
    for (const std::string_view right : {std::string_view{"SBATCH"}, std::string_view{"PBS"}}) {
      const bool is_near =
          words[0].size() < 2 * right.size() && core::edit_distance(words[0], right) <= right.size() / 3;
      if (!is_near || words[0].size() < 3) continue;
      const std::string_view typed = text.substr(0, std::min(text.find(" -"), text.size()));
      look.add(words[0] == right ? Severity::note : Severity::warning, comment.line,
               fmt::format("{} is a comment to the batch system", typed), "",
               fmt::format("put #{} at the beginning of the line, or ## to switch the line off", right));
    }
  }
}

bool has_directive(const Look& look, std::string_view name) {
  if (directive(look.script, name) != nullptr) return true;
  if (name == "mem")
    return directive(look.script, "mem-per-cpu") != nullptr || directive(look.script, "mem-per-gpu") != nullptr;
  return find_by(pbs_resources(look.script), name, &Resource::name) != nullptr;
}

std::string as_typed(std::string_view name, BatchSystem system) {
  if (system != BatchSystem::pbs) return fmt::format("#SBATCH --{}=...", name);
  return name.size() == 1 ? fmt::format("#PBS -{} ...", name) : fmt::format("#PBS -l {}=...", name);
}

void check_needs(const Look& look) {
  const int line = look.script.directives.front().line;
  const auto check = [&](Severity severity, const std::string& name, std::string_view why) {
    if (!has_directive(look, name))
      look.add(severity, line, fmt::format("{} is missing", as_typed(name, look.script.system)),
               fmt::format("{} {}", look.site.title, why), "add it");
  };
  for (const std::string& name : look.site.needs) check(Severity::error, name, "refuses a job without it");
  for (const std::string& name : look.site.wants) check(Severity::warning, name, "gives a job without it little");
}

void check_account(const Look& look) {
  const Flag* const account = directive(look.script, "account");
  if (account == nullptr || !account->value || look.site.account_ends.empty() || !look.first_chunk().gpus) return;
  if (account->text().ends_with(look.site.account_ends) || is_placeholder(account->text())) return;
  look.warning(
      account->line,
      fmt::format("account '{}' of a job with GPUs does not end in {}", account->text(), look.site.account_ends),
      fmt::format("{} has separate accounts for GPUs", look.site.title));
}

void check_system(const Look& look) {
  const std::string_view system = look.is_pbs() ? "pbs" : "slurm";
  if (look.site.system.empty() || look.site.system == system) return;
  look.error(look.script.directives.front().line,
             fmt::format("{} lines in a script for {}", prefix_of(look.script.system), look.site.title),
             fmt::format("its batch system is {}", look.site.system == "slurm" ? "Slurm" : "PBS"),
             "use --site if the script is for another cluster");
}

/// What sbatch looks at before any directive.
void check_form(const Look& look) {
  const bool is_slurm = look.script.system == BatchSystem::slurm;
  Severity of_others = Severity::note;
  for (const Launch& one : look.script.launches)
    if (one.launcher == Launcher::srun && !one.is_in_braces) of_others = Severity::warning;
  if (look.script.has_order_mark)
    look.error(1, "a byte order mark (U+FEFF) before the first character",
               is_slurm ? "sbatch refuses the script: it does not begin with #!" : "the system does not find its #!",
               "sed -i '1s/^\\xEF\\xBB\\xBF//' FILE, or save it as UTF-8 without a mark");
  else if (look.script.system == BatchSystem::none && look.script.commands.empty() && look.script.comments.empty())
    look.error(1, "the script is empty", "sbatch refuses it, and qsub starts a job that does nothing");
  else if (!look.script.has_interpreter && !look.is_pbs())
    look.add(is_slurm ? Severity::error : of_others, 1, "the first line does not begin with #!",
             fmt::format("sbatch refuses the script{}", is_slurm ? "" : "; another script may source it"),
             "#!/bin/bash");
  if (look.script.dos_line != 0)
    look.error(look.script.dos_line, "the line ends as on Windows (CR LF) or an old Mac (CR)",
               is_slurm ? "sbatch refuses the script" : "the shell takes the CR for part of the last word",
               "sed -i 's/\\r$//; s/\\r/\\n/g' FILE");
  if (const int line = look.script.unread.blank_line; line != 0)
    look.error(line, "a blank after the last backslash of the line",
               "the command ends there, and the next line is a command of its own",
               "remove the blank after the backslash");
}

}  // namespace

void check_directives(const Look& look) {
  check_form(look);
  check_lookalikes(look);
  check_places(look);
  check_stray(look);
  check_comments(look);
  check_account(look);
  for (const Flag& flag : look.script.directives) check_placeholder(flag, look);
  if (look.script.directives.empty()) return;
  check_system(look);
  check_needs(look);
}

}  // namespace lockstep::site

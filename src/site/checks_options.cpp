#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "site/checks.hpp"
#include "site/text.hpp"

namespace lockstep::site {
namespace {

const char* name_of(Of reader) { return reader == Of::qsub ? "qsub" : reader == Of::srun ? "srun" : "sbatch"; }

const char* refusal_of(Of reader) { return reader == Of::srun ? "srun refuses it" : refused; }

std::string meant_option(const Flag& flag, Of reader) {
  if (reader == Of::qsub) return flag.name == "n" ? "-N, the name of the job" : "";
  if (const auto* const row = option_row("meant", flag.name)) return fmt::format("did you mean --{}?", (*row)[1]);
  std::vector<std::string> names;
  for (const Option& option : options_of(OptionSet::slurm))
    if (option.of == Of::both || option.of == reader) names.push_back(option.name);
  return did_you_mean(flag.name, names, "--");
}

/// The long option whose name "-mail-type=END" or "-nodes 2" has; empty if that is not what was typed.
std::string meant_long(const Flag& flag) {
  if (flag.typed.size() != 2 || !flag.value) return "";
  const std::string word = flag.typed.substr(1) + flag.value->substr(0, flag.value->find('='));
  return word.size() > 2 && find_option(OptionSet::slurm, word) != nullptr ? word : "";
}

bool has_shell_variable(std::string_view value) {
  const std::size_t dollar = value.find_first_of("$`");
  return dollar != value.npos && dollar + 1 < value.size();
}

void check_value(const Flag& flag, const Option& option, Of reader, const Look& look) {
  const std::string_view value = flag.text();
  const std::string what = fmt::format("{} has the value '{}'", flag.typed, value);
  if (!flag.value && option.takes == Takes::value)
    return look.error(flag.line, fmt::format("{} has no value", flag.typed), refusal_of(reader));
  if (!flag.value) return;
  if (option.takes == Takes::nothing)
    return look.error(flag.line, fmt::format("{}, but takes none", what), refusal_of(reader));
  if (value.starts_with('='))
    return look.error(flag.line, what, refusal_of(reader), "write one = between option and value");
  if (has_shell_variable(value)) {
    if (reader == Of::sbatch)
      look.error(flag.line, what, "no shell reads directives, so variables are not filled in",
                 "write the value out, or give it to sbatch on the command line");
    return;
  }
  const bool is_path = option.form == "path";
  if (is_path && reader == Of::srun) return;  // the shell has filled it in
  if (const std::string expected = expected_of(option.form, option.words, value); !expected.empty())
    look.add(is_path && reader == Of::qsub ? Severity::warning : Severity::error, flag.line, what,
             is_path ? "~ is taken for a folder of that name" : refusal_of(reader), expected);
}

void check_flag(const Flag& flag, Of reader, const Look& look) {
  const Option* const option =
      flag.is_known ? find_option(reader == Of::qsub ? OptionSet::qsub : OptionSet::slurm, flag.name) : nullptr;
  if (option == nullptr) {
    const std::string meant = look.may_search() ? meant_option(flag, reader) : "";
    if (reader == Of::srun && meant.empty()) return;  // plugins of a site add to them
    return look.error(flag.line, fmt::format("{} is no option of {}", flag.typed, name_of(reader)), refusal_of(reader),
                      meant);
  }
  if (const std::string meant = reader == Of::qsub ? "" : meant_long(flag); !meant.empty())
    return look.error(flag.line, fmt::format("-{} is taken for {} with a value", meant, flag.typed),
                      "long options have two dashes", fmt::format("--{}", meant));
  if (option->of == Of::srun && reader == Of::sbatch)
    return look.error(flag.line, fmt::format("{} is an option of srun, not of sbatch", flag.typed), refused,
                      "give it to srun");
  if (!option->until.empty())
    return look.error(flag.line, fmt::format("Slurm {} removed {}", option->until, flag.typed), refusal_of(reader),
                      fmt::format("--{}", option->instead));
  if (option->is_new)
    look.note(flag.line, fmt::format("{} is newer than Slurm 22.05", flag.typed), "an older Slurm refuses it");
  if (option->of == Of::sbatch && reader == Of::srun) return;  // srun --wait is another one
  check_value(flag, *option, reader, look);
}

/// More nodes than tasks, by the least of "2-4".
void check_covers(const Flag& tasks, const Flag& nodes, const Look& look) {
  const auto most = whole_number(tasks.text()), least = whole_number(nodes.text().substr(0, nodes.text().find('-')));
  if (most && least && *most > 0 && *most < *least)
    look.warning(std::max(tasks.line, nodes.line), fmt::format("{} on {} nodes", counted(*most, "task"), *least),
                 "Slurm takes only as many nodes as there are tasks", fmt::format("{} {}", nodes.typed, *most));
}

/// A row of [relations].
void check_relation(const Rows::value_type& row, const std::vector<Flag>& flags, Of reader, const Look& look) {
  const Flag* const flag = last_of(flags, row[0]);
  if (flag == nullptr) return;
  const bool is_need = row[1] == "needs_one_of", excludes = row[1] == "excludes";
  std::string missing;
  for (const std::string_view name : split_words(row[2])) {
    const Flag* const other = last_of(flags, name);
    missing += fmt::format("{}--{}", missing.empty() ? "" : ", ", name);
    if (is_need && other != nullptr) return;
    if (is_need || other == nullptr) continue;
    if (row[1] == "covers") return check_covers(*flag, *other, look);
    const Flag* const first = std::min(flag, other);  // both are of `flags`
    const Flag* const last = std::max(flag, other);
    look.add(excludes ? Severity::error : Severity::warning, last->line,
             fmt::format("{} together with {} of line {}", last->typed, first->typed, first->line),
             excludes ? fmt::format("they exclude each other: {}", refusal_of(reader))
                      : "they are opposites, and the last one counts",
             "remove one of the two");
  }
  if (is_need && reader == Of::sbatch)
    look.warning(flag->line, fmt::format("{} without any of {}", flag->typed, missing),
                 "the job is refused, unless the command line has one of them");
}

/// An option that is there twice, with two values.
void check_repeated(const std::vector<Flag>& flags, const Look& look) {
  std::map<std::string_view, const Flag*> seen;
  for (const Flag& flag : flags) {
    const auto [found, is_first] = seen.emplace(flag.name, &flag);
    if (is_first || found->second->value == flag.value || flag.name == "mail-type") continue;
    look.warning(flag.line, fmt::format("{} again, after line {}", flag.typed, found->second->line),
                 "the last one counts", "remove one of the two");
  }
}

/// Whether "log_%A_%4a.out" has one of `symbols`.
bool has_symbol(std::string_view pattern, std::string_view symbols) {
  for (std::size_t at = pattern.find('%'); at != pattern.npos; at = pattern.find('%', at + 1)) {
    at = std::min(pattern.find_first_not_of("0123456789", at + 1), pattern.size() - 1);
    if (symbols.find(pattern[at]) != symbols.npos) return true;
  }
  return false;
}

/// Jobs of an array, each of which has its own %a and %j.
void check_outputs(const Look& look) {
  if (directive(look.script, "array") == nullptr) return;
  for (const std::string_view name : {"output", "error"}) {
    const Flag* const file = directive(look.script, name);
    if (file == nullptr || !file->value || *file->value == "/dev/null" || has_symbol(*file->value, "ajJ")) continue;
    look.warning(file->line, fmt::format("{} has the value '{}' in a job array", file->typed, *file->value),
                 "all jobs of the array write into one file", "put %A_%a in it: the array and the index");
  }
}

void check_types(const Flag& flag, const Look& look) {
  for (const Gres& gres : read_gres(flag.text())) {
    if (gres.name != "gpu" || gres.type.empty()) continue;
    const std::string near = near_name(gres.type, look.site.gone_gpus).value_or("");
    if (near == gres.type)
      look.error(flag.line, fmt::format("{} no longer has GPUs of type '{}'", look.site.title, gres.type),
                 "the job is refused or waits for ever", "a partition and a type of today");
    else if (gres.type == "geforece" || !near.empty())  // in tutorials, also of sites whose list does not have it
      look.error(
          flag.line, fmt::format("'{}' is no type of GPU", gres.type), refused,
          near.empty() ? "did you mean geforce?" : fmt::format("did you mean {}? The site no longer has it", near));
  }
}

}  // namespace

void check_options(const Look& look) {
  const Rows& relations = option_rows("relations");
  for (const Flag& flag : look.script.directives)
    if (!look.has_lookalike(flag.line)) check_flag(flag, look.is_pbs() ? Of::qsub : Of::sbatch, look);
  for (const Launch& launch : look.script.launches) {
    if (launch.launcher != Launcher::srun || launch.is_by_variable) continue;
    for (const Flag& flag : launch.flags) check_flag(flag, Of::srun, look);
    for (const auto& row : relations) check_relation(row, launch.flags, Of::srun, look);
  }
  if (look.is_pbs()) return check_resources(look);
  check_outputs(look);
  for (const Flag& flag : look.script.directives)
    if (flag.name == "gres") check_types(flag, look);
  if (look.script.is_heterogeneous) return;
  for (const auto& row : relations) check_relation(row, look.script.directives, Of::sbatch, look);
  check_repeated(look.script.directives, look);
}

}  // namespace lockstep::site

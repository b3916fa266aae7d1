#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/suggest.hpp"
#include "site/checks.hpp"
#include "site/text.hpp"

namespace lockstep::site {
namespace {

struct Meant {
  std::string_view wrong;
  std::string_view right;
};

// Options of other batch systems and of memory that sbatch does not know.
constexpr Meant meant_options[]{{"memory", "mem"},          {"walltime", "time"},
                                {"name", "job-name"},       {"queue", "partition"},
                                {"email", "mail-user"},     {"cores", "cpus-per-task"},
                                {"ppn", "ntasks-per-node"}, {"cpu", "cpus-per-task"},
                                {"cpus", "cpus-per-task"},  {"gpu", "gpus"},
                                {"project", "account"},     {"gpus-per-tasks", "gpus-per-task"}};

constexpr std::string_view placeholder_of_templates = "CHANGE_ME";

std::string_view prefix_of(BatchSystem system) { return system == BatchSystem::pbs ? "#PBS" : "#SBATCH"; }

/// "<code>", "your-account-name", "change-me", "XXXX".
bool is_placeholder(std::string_view value) {
  constexpr std::array<std::string_view, 14> parts{"<",
                                                   ">",
                                                   "your",
                                                   "change_me",
                                                   "changeme",
                                                   "change-me",
                                                   "replace",
                                                   "placeholder",
                                                   "partition_name",
                                                   "xxxx",
                                                   "account_name",
                                                   "account-name",
                                                   "project_code",
                                                   "project-name"};
  return std::ranges::any_of(parts, [value](std::string_view part) { return contains_ignoring_case(value, part); });
}

std::string meant_option(const Flag& flag, const Look& look) {
  if (look.script.system == BatchSystem::pbs) {
    if (flag.name == "n") return "-N, the name of the job";
    return "";
  }
  const auto* const known = std::ranges::find(meant_options, flag.name, &Meant::wrong);
  if (known != std::end(meant_options)) return fmt::format("did you mean --{}?", known->right);
  std::vector<std::string> names;
  for (const Option& option : slurm_options())
    if (option.is_of_sbatch) names.push_back(option.name);
  const auto near = near_name(flag.name, names);
  return near ? fmt::format("did you mean --{}?", *near) : "";
}

/// The long option whose name "-mail-type=END" or "-nodes 2" has; empty if that is not what was typed.
std::string meant_long(const Flag& flag) {
  if (flag.typed.size() != 2 || !flag.value) return "";
  const std::string word = flag.typed.substr(1) + flag.value->substr(0, flag.value->find('='));
  const bool is_name =
      word.size() > 2 && std::ranges::find(slurm_options(), word, &Option::name) != slurm_options().end();
  return is_name ? word : "";
}

void check_option(const Flag& flag, const Look& look, Findings& findings) {
  const bool is_slurm = look.script.system == BatchSystem::slurm;
  if (!flag.is_known) {
    findings.push_back({.severity = Severity::error,
                        .what = fmt::format("{} is no option of {}", flag.typed, is_slurm ? "sbatch" : "qsub"),
                        .why = "the job is refused",
                        .fix = meant_option(flag, look),
                        .line = flag.line});
    return;
  }
  if (const std::string meant = meant_long(flag); is_slurm && !meant.empty()) {
    findings.push_back({.severity = Severity::error,
                        .what = fmt::format("-{} is taken for {} with a value", meant, flag.typed),
                        .why = "long options have two dashes",
                        .fix = fmt::format("--{}", meant),
                        .line = flag.line});
    return;
  }
  const auto option = std::ranges::find(slurm_options(), flag.name, &Option::name);
  if (is_slurm && option != slurm_options().end() && !option->is_of_sbatch)
    findings.push_back({.severity = Severity::error,
                        .what = fmt::format("{} is an option of srun, not of sbatch", flag.typed),
                        .why = "the job is refused",
                        .fix = "give it to srun",
                        .line = flag.line});
}

void check_placeholder(const Flag& flag, const Look& look, Findings& findings) {
  constexpr std::array<std::string_view, 7> named{"account", "qos", "partition", "mail-user", "reservation", "A", "q"};
  if (!flag.value || std::ranges::find(named, flag.name) == named.end()) return;
  if (*flag.value == placeholder_of_templates)
    findings.push_back({.severity = Severity::note,
                        .what = fmt::format("edit this line: {} is still {}", flag.typed, *flag.value),
                        .why = "",
                        .fix = "",
                        .line = flag.line});
  else if (is_placeholder(*flag.value))
    findings.push_back(
        {.severity = flag.name == "mail-user" ? Severity::warning : Severity::error,
         .what = fmt::format("{} is still '{}'", flag.typed, *flag.value),
         .why = flag.name == "mail-user" ? "mail reaches nobody" : "the job is refused",
         .fix = fmt::format("edit line {}: {} {} and your own", flag.line, prefix_of(look.script.system), flag.typed),
         .line = flag.line});
}

void check_places(const Look& look, Findings& findings) {
  const std::string_view prefix = prefix_of(look.script.system);
  for (const Flag& flag : look.script.late)
    findings.push_back({.severity = Severity::error,
                        .what = fmt::format("{} {} after the first command", prefix, flag.typed),
                        .why = "the batch system reads no directives from there on",
                        .fix = "move it above the first command",
                        .line = flag.line});
  for (const Flag& flag : look.script.of_other)
    findings.push_back({.severity = Severity::warning,
                        .what = fmt::format("a directive of another batch system in a script of {} lines", prefix),
                        .why = "which of the two counts depends on how the job is submitted",
                        .fix = "leave it out",
                        .line = flag.line});
}

bool begins_with_long_dash(std::string_view word) {
  return word.starts_with("\xe2\x80\x93") || word.starts_with("\xe2\x80\x94") || word.starts_with("\xe2\x88\x92");
}

void check_stray(const Look& look, Findings& findings) {
  for (const Line& word : look.script.stray) {
    if (word.text.starts_with('#')) {
      findings.push_back({.severity = Severity::error,
                          .what = fmt::format("'{}' is no comment to qsub", word.text),
                          .why = "all of the line after #PBS are its options, and the job is refused (directive error)",
                          .fix = "a line of its own",
                          .line = word.line});
      continue;
    }
    const bool is_dash = begins_with_long_dash(word.text);
    findings.push_back({.severity = Severity::error,
                        .what = is_dash ? fmt::format("'{}' begins with a dash of typography, not with '-'", word.text)
                                        : fmt::format("'{}' belongs to no option", word.text),
                        .why = "the batch system takes it for a file or refuses the job",
                        .fix = is_dash ? "-, as text copied from a web page may not have it" : "--option=value",
                        .line = word.line});
  }
}

/// "#SABTCH --nodes=2" and "# SBATCH --nodes=2" are comments to the batch system.
void check_comments(const Look& look, Findings& findings) {
  for (const Line& comment : look.script.comments) {
    const std::string_view text = trim(comment.text);
    const auto words = split_words(text.substr(1));
    if (words.size() < 2 || !words[1].starts_with('-') || text.starts_with("##")) continue;
    for (const std::string_view right : {std::string_view{"SBATCH"}, std::string_view{"PBS"}}) {
      const bool is_near =
          words[0].size() < 2 * right.size() && core::edit_distance(words[0], right) <= right.size() / 3;
      if (is_near && words[0].size() > 2)
        findings.push_back({.severity = words[0] == right ? Severity::note : Severity::warning,
                            .what = fmt::format("{} is a comment to the batch system",
                                                text.substr(0, std::min(text.find(" -"), text.size()))),
                            .why = "",
                            .fix = fmt::format("#{} at the beginning of the line, or ## if it is to be none", right),
                            .line = comment.line});
    }
  }
}

bool has_directive(const Look& look, std::string_view name) {
  if (directive(look.script, name) != nullptr) return true;
  if (name == "mem")
    return directive(look.script, "mem-per-cpu") != nullptr || directive(look.script, "mem-per-gpu") != nullptr;
  return last_resource(pbs_resources(look.script), name) != nullptr;
}

std::string as_typed(std::string_view name, BatchSystem system) {
  if (system != BatchSystem::pbs) return fmt::format("#SBATCH --{}=...", name);
  return name.size() == 1 ? fmt::format("#PBS -{} ...", name) : fmt::format("#PBS -l {}=...", name);
}

void check_needs(const Look& look, Findings& findings) {
  const int line = look.script.directives.empty() ? 1 : look.script.directives.front().line;
  const auto complain = [&](Severity severity, const std::string& name, std::string why) {
    if (has_directive(look, name)) return;
    findings.push_back({.severity = severity,
                        .what = fmt::format("{} is missing", as_typed(name, look.script.system)),
                        .why = fmt::format("{} {}", look.site.title, why),
                        .fix = "add it",
                        .line = line});
  };
  for (const std::string& name : look.site.needs) complain(Severity::error, name, "refuses a job without it");
  for (const std::string& name : look.site.wants)
    complain(Severity::warning, name, "gives little to a job that does not ask");
}

void check_account(const Look& look, Findings& findings) {
  const Flag* const account = directive(look.script, "account");
  const bool wants_gpus = !look.request.chunks.empty() && look.request.chunks.front().gpus;
  if (account == nullptr || !account->value || look.site.account_ends.empty() || !wants_gpus) return;
  if (account->value->ends_with(look.site.account_ends) || *account->value == placeholder_of_templates) return;
  if (is_placeholder(*account->value)) return;
  findings.push_back({.severity = Severity::warning,
                      .what = fmt::format("account '{}' of a job with GPUs does not end in {}", *account->value,
                                          look.site.account_ends),
                      .why = fmt::format("{} has accounts of their own for them", look.site.title),
                      .fix = "",
                      .line = account->line});
}

void check_system(const Look& look, Findings& findings) {
  const std::string_view system = look.script.system == BatchSystem::slurm ? "slurm" : "pbs";
  if (look.script.directives.empty() || look.site.system.empty() || look.site.system == system) return;
  findings.push_back(
      {.severity = Severity::error,
       .what = fmt::format("{} lines in a script for {}", prefix_of(look.script.system), look.site.title),
       .why = fmt::format("its batch system is {}", look.site.system == "slurm" ? "Slurm" : "PBS"),
       .fix = "--site, if the script is for another one",
       .line = look.script.directives.front().line});
}

/// What sbatch looks at before any directive.
void check_form(const Look& look, Findings& findings) {
  const bool is_slurm = look.script.system == BatchSystem::slurm;
  if (is_slurm && !look.script.has_interpreter)
    findings.push_back({.severity = Severity::error,
                        .what = "the first line does not begin with #!",
                        .why = "sbatch refuses the script",
                        .fix = "#!/bin/bash",
                        .line = 1});
  if (look.script.dos_line != 0)
    findings.push_back(
        {.severity = Severity::error,
         .what = "lines end as those of Windows do (CR LF)",
         .why = is_slurm ? "sbatch refuses the script" : "the shell takes the CR for a part of the last word",
         .fix = "sed -i 's/\\r$//' FILE",
         .line = look.script.dos_line});
}

}  // namespace

void check_directives(const Look& look, Findings& findings) {
  check_form(look, findings);
  check_system(look, findings);
  for (const Flag& flag : look.script.directives) {
    check_option(flag, look, findings);
    check_placeholder(flag, look, findings);
  }
  check_places(look, findings);
  check_stray(look, findings);
  check_comments(look, findings);
  if (!look.script.directives.empty()) check_needs(look, findings);
  check_account(look, findings);
}

}  // namespace lockstep::site

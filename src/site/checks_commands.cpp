#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/suggest.hpp"
#include "site/checks.hpp"
#include "site/text.hpp"
#include "site/variables.hpp"

namespace lockstep::site {
namespace {

/// nodes=( a b ); nodes_array=($nodes): $nodes is the first of them.
void check_lists(const Look& look) {
  std::set<std::string_view> lists;
  for (const Variable& variable : look.script.variables) {
    const std::string_view value = trim(variable.value);
    if (!value.starts_with('(')) continue;
    const std::string_view item = trim(without_parentheses(value)), from = expanded_name(item);
    if (!item.starts_with("${") && lists.contains(from))
      look.error(variable.line, fmt::format("{}=({}) keeps one element of the list {}", variable.name, item, from),
                 "$NAME of a list is its first element", fmt::format("{}=(\"${{{}[@]}}\")", variable.name, from));
    lists.insert(variable.name);
  }
}

/// hostname -I | cut -d " " -f 2 and hostname --ip-address: which address that is nobody knows.
void check_addresses(const Look& look) {
  const auto& commands = look.script.commands;
  const std::string fix = "scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1: a name is enough";
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const auto& words = commands[i].words;
    if (!runs(words, "hostname")) continue;
    const bool lists_all = has_word(words, "-I") || has_word(words, "--all-ip-addresses");
    const bool asks_one = has_word(words, "-i") || has_word(words, "--ip-address");
    const bool is_cut = i + 1 < commands.size() && commands[i + 1].words[0] == "cut";
    const bool is_first =
        is_cut && (has_word(commands[i + 1].words, "-f1") || argument(commands[i + 1].words, "-f") == "1");
    if (lists_all && is_cut && !is_first)
      look.warning(commands[i].line, "hostname -I | cut: that address is a guess",
                   "the order of a node's networks differs between nodes", fix);
    else if (asks_one || lists_all)
      look.note(commands[i].line, "hostname may print several addresses", "where a node has several networks", fix);
  }
}

/// By read NAME, for NAME in ... and others.
std::set<std::string_view> read_names(const JobScript& script) {
  std::set<std::string_view> names;
  for (const Command& command : script.commands)
    if (is_one_of(command.words[0], "read for select mapfile readarray getopts printf declare local"))
      for (const std::string& word : command.words) names.insert(assigned_name(word));
  return names;
}

/// Those, and by assignments.
std::set<std::string_view> set_names(const JobScript& script) {
  std::set<std::string_view> names = read_names(script);
  for (const Variable& variable : script.variables) names.insert(variable.name);
  return names;
}

/// if [ "$ENABLE" = 1 ] before ENABLE=1: the test never holds.
void check_tests(const Look& look) {
  std::map<std::string_view, int> first_set;
  for (const Variable& variable : look.script.variables) {
    const auto [found, is_new] = first_set.emplace(variable.name, variable.line);
    if (!is_new) found->second = std::min(found->second, variable.line);
  }
  const auto given = read_names(look.script);
  for (const Read& read : look.reads) {
    const Command& command = read.command;
    if (!command.is_condition || command.is_loop || command.is_in_braces) continue;
    const auto set = first_set.find(read.name);
    if (read.has_default || read.is_asked || set == first_set.end() || set->second <= command.line ||
        given.contains(read.name))
      continue;
    look.warning(command.line, fmt::format("${} is tested before line {} sets it", read.name, set->second),
                 "it is empty, unless the shell that submits the job sets it", "set it first");
  }
}

/// Not exported, they reach no program; the shell itself may use them, as in torchrun --master_addr $MASTER_ADDR.
void check_exports(const Look& look) {
  const auto prefixes = split_words("NCCL_ FI_ UCX_ MPICH_ OMPI_MCA_ MASTER_");
  std::set<std::string_view> used;
  for (const Read& read : look.reads) used.insert(read.name);
  for (const Variable& variable : look.script.unexported)
    if (starts_with_any(variable.name, prefixes) && !used.contains(variable.name))
      look.warning(variable.line, fmt::format("{} is set but not exported", variable.name), "no program gets it",
                   fmt::format("export {}=...", variable.name));
}

void check_values(const Look& look) {
  for (const Variable& variable : look.script.variables) {
    const auto port = variable.name == "MASTER_PORT" ? whole_number(variable.value) : std::nullopt;
    if (port) warn_of_port(variable.line, *port, look);
    if (variable.value == "CHANGE_ME")
      look.note(variable.line, fmt::format("edit this line: {} is still CHANGE_ME", variable.name));
  }
}

/// Whatever sets the environment before a job script may set these.
bool is_of_environment(std::string_view name) {
  const auto& row = option_rows("environment").front();
  return is_one_of(name, row[0]) || starts_with_any(name, split_words(row[1]));
}

bool has_lower_case(std::string_view name) {
  return std::ranges::any_of(name, [](char c) { return c >= 'a' && c <= 'z'; });
}

/// Those that nothing gives a value, up to where a file is sourced. Where they may come from the environment, that is a
/// note; a process id does not. Names in lower case are passed over: most are set by arithmetic, which is not read.
void check_undefined(const Look& look) {
  std::set<std::string_view> known = set_names(look.script);
  for (const Command& command : look.script.commands) {
    const std::string& first = command.words[0];
    if (first == "." || first == "source" || first == "eval") return;
    const bool wants_process = first == "kill" || first == "wait";
    for (const auto& [name, of, has_default, is_asked] : reads_of(command)) {
      if (has_default || is_asked || (has_lower_case(name) && !wants_process)) continue;
      if (!known.insert(name).second || is_of_environment(name)) continue;
      look.add(wants_process ? Severity::error : Severity::note, command.line,
               fmt::format("nothing in this script sets ${}", name),
               wants_process ? "it is empty: the command ends nothing and waits for nothing"
                             : "it is empty, unless a module or the shell that submits the job sets it",
               wants_process ? fmt::format("put {}=$! after the command with &", name) : "");
    }
  }
}

bool asks_if_set(const Command& command) {
  return std::ranges::any_of(command.words, [](std::string_view word) { return is_one_of(word, "-n -z -v"); });
}

/// Whether the script asks here which of two batch systems runs it. What `case` compares may be any of their names.
bool asks_for_system(const Command& command, std::string_view own, std::string_view other) {
  const std::string text = core::join(command.words, " ");
  return command.words[0] == "case" ||
         (command.is_condition &&
          (contains_ignoring_case(text, other) || (asks_if_set(command) && contains_ignoring_case(text, own))));
}

/// What batch systems and launchers set is known: $SLURM_NTAKS is a letter or two off, and a job of Slurm has no
/// $PBS_O_WORKDIR, unless the script is for both.
void check_misread(const Look& look) {
  const bool is_for_one = !look.script.directives.empty() && look.script.of_other.empty();
  const std::string_view own = look.is_pbs() ? "PBS" : "Slurm", other = look.is_pbs() ? "Slurm" : "PBS";
  const bool asks = std::ranges::any_of(look.script.commands,
                                        [&](const Command& command) { return asks_for_system(command, own, other); });
  std::set<std::string_view> known = set_names(look.script);
  for (const auto& [name, command, has_default, is_asked] : look.reads) {
    const Family* const family = family_of(name);
    if (family == nullptr || !known.insert(name).second || !is_of_environment(name)) continue;
    const bool is_known = is_known_variable(name);
    const auto near = !is_known && look.may_search() ? near_variable(name) : std::nullopt;
    const bool is_of_other = is_known && is_for_one && !asks && family->reader == other &&
                             find_by(reads_of(command), true, &Read::has_default) == nullptr;
    if (near || is_of_other)
      look.warning(command.line, fmt::format("nothing sets ${}", name),
                   near ? "it is empty" : fmt::format("it is a variable of {}, and empty in a job of {}", other, own),
                   near ? fmt::format("did you mean {}?", *near) : std::string{named_elsewhere(name)});
  }
}

void check_replaced(const Look& look) {
  for (const std::string& pair : look.site.replaced) {
    const std::string_view old = assigned_name(pair);
    if (const Read* const read = find_by(look.reads, old, &Read::name))
      look.warning(read->command.line, fmt::format("{} deprecates ${}", look.site.title, old),
                   "it is empty once the site removes it",
                   fmt::format("${}", pair.substr(std::min(old.size() + 1, pair.size()))));
  }
}

/// SLURM_CPUS_PER_TASK / SLURM_NNODES: the cores of a task are not those of the job.
void check_shares(const Look& look) {
  const auto nodes = split_words("SLURM_NNODES SLURM_JOB_NUM_NODES");
  for (const Command& command : look.script.commands) {
    for (const std::string_view name : {"SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE"}) {
      const std::string text = core::join(command.words, " ");
      const std::size_t at = text.find(name);
      if (at == text.npos) continue;
      const std::string_view rest = std::string_view{text}.substr(at + name.size());
      const std::string_view divisor = rest.substr(std::min(rest.find_first_not_of(" }\"$/{"), rest.size()));
      const bool is_divided = rest.substr(0, rest.size() - divisor.size()).find('/') != rest.npos;
      if (is_divided && starts_with_any(divisor, nodes))
        look.warning(command.line, fmt::format("{} divided by the nodes of the job", name),
                     "it already counts the cores of one task or node: each gets fewer the more nodes there are",
                     fmt::format("${}", name));
    }
  }
}

void check_here_documents(const Look& look) {
  for (const Command& command : look.script.commands)
    if (command.is_endless)
      look.error(command.line, "a here-document (<<) that never ends",
                 "the rest of the script is its text, and none of it runs",
                 "put its end word on a line with nothing before or after; write a shift of bits as $((1 << 2))");
}

/// Lmod's functions use variables that are not set.
void check_unset(const Look& look) {
  if (!look.site.has_lmod) return;
  int line = 0;
  for (const Command& command : look.script.commands) {
    const auto& words = command.words;
    if (words[0] == "set" && words.size() > 1) {
      const bool names_it = words[1].find('u') != std::string::npos || has_word(words, "nounset");
      const bool is_on = words[1].starts_with('-') && names_it;
      const bool is_off = words[1].starts_with('+') && names_it;
      line = is_on ? command.line : is_off ? 0 : line;
    }
    if ((words[0] != "module" && words[0] != "ml") || line == 0) continue;
    look.warning(line, fmt::format("set -u before {} in line {}", words[0], command.line),
                 "Lmod's functions fail under it", "load the modules first");
    return;
  }
}

bool is_plain_relative(std::string_view path) {
  return !path.empty() && path.find_first_of("$`*?{~") == path.npos && !path.starts_with('/') && !path.starts_with('-');
}

/// The file that a command runs: ./x, python x.py, bash x.sh, torchrun x.py.
std::string_view file_of(std::span<const std::string> words) {
  if (words.empty()) return {};
  if (words[0].starts_with("./") || words[0].ends_with(".py") || words[0].ends_with(".sh")) return words[0];
  if (!is_one_of(words[0], "python python3 bash sh source . Rscript")) return {};
  std::size_t at = 1;
  while (at < words.size() && (words[at] == "-u" || words[at] == "-x" || words[at] == "-e")) ++at;
  return at < words.size() && !words[at].starts_with('-') ? std::string_view{words[at]} : std::string_view{};
}

void check_files(const Look& look) {
  if (!look.exists) return;
  const auto note = [&](std::span<const std::string> words, int line) {
    const std::string file{file_of(words)};
    if (is_plain_relative(file) && !look.exists(file))
      look.note(line, fmt::format("there is no '{}' beside the script", file));
  };
  for (const Command& command : look.script.commands) {
    if (is_one_of(command.words[0], "cd pushd")) return;  // what comes after is somewhere else
    note(command.words, command.line);
  }
  for (const Launch& launch : look.script.launches)
    if (launch.variable.empty()) note(launch.program, launch.line);
}

}  // namespace

std::vector<Read> reads_of(const Command& command) {
  std::vector<Read> reads;
  const bool asks = asks_if_set(command);
  for (const std::string& word : command.words) {
    for (std::size_t at = word.find('$'); at != word.npos; at = word.find('$', at + 1)) {
      const std::string_view rest = std::string_view{word}.substr(at + 1);
      const bool is_braced = rest.starts_with('{');
      const std::string_view name = assigned_name(rest.substr(is_braced ? 1 : 0));
      const std::string_view after = rest.substr(std::min(rest.size(), name.size() + (is_braced ? 1 : 0)), 1);
      if (!name.empty()) reads.push_back({name, command, is_braced && after.find_first_of(":-+?") == 0, asks});
    }
  }
  return reads;
}

void check_commands(const Look& look) {
  check_lists(look);
  check_addresses(look);
  check_tests(look);
  check_exports(look);
  check_values(look);
  check_unset(look);
  check_undefined(look);
  check_misread(look);
  check_replaced(look);
  check_shares(look);
  check_here_documents(look);
  check_files(look);
}

}  // namespace lockstep::site

#include "site/job_script.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "core/characters.hpp"
#include "site/text.hpp"

namespace lockstep::site {
namespace {

constexpr std::string_view own_mark = "lockstep:";
// More than any script has, so that one made up cannot take all memory.
constexpr std::size_t most_held = 64;
constexpr std::size_t most_launched_words = 10'000;  ///< of the programs of all launches
constexpr int most_directives = 1000;
constexpr int most_nested = 4;  ///< launchers that start launchers

/// Words of a directive: quotes as the batch system takes them, and nothing after a # that is not quoted. To qsub that
/// is no comment: there it is the last word, with all that follows.
std::vector<std::string> directive_words(std::string_view text, BatchSystem system) {
  std::vector<std::string> words;
  bool has_word = false;
  char quote = '\0';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote == '\0' && c == '#' && system == BatchSystem::slurm) break;
    if (quote == '\0' && c == '#' && !has_word) {
      words.emplace_back(trim(text.substr(i)));
      break;
    }
    const bool is_between = quote == '\0' && (c == ' ' || c == '\t' || c == '\r');
    if (!is_between && !has_word) words.emplace_back();
    has_word = !is_between;
    if (c == quote)
      quote = '\0';
    else if (quote == '\0' && (c == '\'' || c == '"'))
      quote = c;
    else if (!is_between)
      words.back() += c;
  }
  return words;
}

class Parts {
 public:
  explicit Parts(JobScript& script) : script_{script} {}

  void read_line(std::string_view line, int number) {
    if (line.starts_with("#SBATCH")) return read_directive(line.substr(7), BatchSystem::slurm, number);
    if (line.starts_with("#PBS")) return read_directive(line.substr(4), BatchSystem::pbs, number);
    const std::string_view text = trim(line);
    if (text.starts_with('#'))
      script_.comments.push_back({number, std::string{line}});
    else
      has_command_ |= !text.empty();
  }

 private:
  void keep_odd(std::string_view word, int line) {
    while (!word.empty() && script_.unread.odd.size() < Unread::most_odd) {
      const auto first = core::first_character(word);
      if (first && first->n_bytes > 1) script_.unread.odd.push_back({line, first->code});
      word.remove_prefix(first ? first->n_bytes : 1);
    }
  }

  void read_directive(std::string_view text, BatchSystem system, int line) {
    if (++n_directives_ > most_directives) return void(script_.unread.full_line = line);
    const auto words = directive_words(text, system);
    for (const std::string& word : words) keep_odd(word, line);
    const OptionSet set = system == BatchSystem::slurm ? OptionSet::slurm : OptionSet::qsub;
    if (script_.system == BatchSystem::none) script_.system = system;
    const bool is_of_other = system != script_.system;
    auto& target = is_of_other ? script_.of_other : has_command_ ? script_.late : script_.directives;
    std::span<const std::string> rest{words};
    while (!rest.empty()) {
      std::size_t n_used = 0;
      for (Flag& flag : read_flags(rest, set, line, n_used)) target.push_back(std::move(flag));
      rest = rest.subspan(n_used);
      if (rest.empty()) break;
      const bool is_separator = rest.front() == "hetjob" || rest.front() == "packjob";
      script_.is_heterogeneous |= is_separator;
      if (!is_separator) script_.stray.push_back({line, rest.front()});
      rest = rest.subspan(1);
    }
  }

  JobScript& script_;
  bool has_command_ = false;
  int n_directives_ = 0;
};

std::optional<Variable> assignment(std::string_view word, int line) {
  const std::string_view name = assigned_name(word);
  std::string_view rest = word.substr(name.size());
  if (rest.starts_with('+')) rest.remove_prefix(1);
  if (name.empty() || !rest.starts_with('=')) return std::nullopt;
  return Variable{std::string{name}, std::string{rest.substr(1)}, line};
}

bool exports(const Command& command) {
  const std::string& first = command.words.front();
  return first == "export" || first == "env" ||
         (first == "declare" && command.words.size() > 1 && command.words[1] == "-x");
}

/// `export A=b`, `A=b` and `A=b command`; also what env sets.
void keep_variables(const Command& command, JobScript& script) {
  const bool takes_all = exports(command) || is_one_of(command.words.front(), "declare local readonly");
  const bool is_all_assignments = std::ranges::all_of(
      command.words, [&](const std::string& word) { return assignment(word, command.line).has_value(); });
  const bool is_exported = takes_all ? exports(command) : !is_all_assignments;
  for (const std::string& word : command.words) {
    auto variable = assignment(word, command.line);
    if (!variable && !takes_all) break;
    if (!variable) continue;
    if (!is_exported) script.unexported.push_back(*variable);
    script.variables.push_back(std::move(*variable));
  }
}

/// Leaves only those in `unexported` that no `export NAME` and no `set -a` of the script exports.
void drop_exported(JobScript& script) {
  std::set<std::string_view> exported;
  for (const Command& command : script.commands) {
    const bool exports_all =
        command.words.size() > 1 && command.words[0] == "set" && command.words[1].starts_with("-a");
    if (exports_all) return script.unexported.clear();
    if (!exports(command)) continue;
    for (const std::string& word : command.words) exported.insert(assigned_name(word));
  }
  std::erase_if(script.unexported, [&](const Variable& variable) { return exported.contains(variable.name); });
}

/// run="srun -n 4" and run=(srun -n 4).
void keep_launchers(JobScript& script) {
  for (const Variable& variable : script.variables) {
    const auto parts = split_words(without_parentheses(variable.value));
    const std::vector<std::string> words{parts.begin(), parts.end()};
    if (script.launches.size() == most_held) return;
    if (auto launch = read_launch(script.known.fill_in(words), variable.line)) {
      launch->variable = variable.name;
      script.launches.push_back(std::move(*launch));
    }
  }
}

/// The launches that `command` is, by the launchers that variables hold; those are the first `n` of all. `words` are
/// those of the command, filled in.
void keep_launch_by_variable(const Command& command, std::span<const std::string> words, std::size_t n,
                             JobScript& script) {
  const std::string_view name = expanded_name(command.words.front());
  for (std::size_t i = 0; i < n && !name.empty(); ++i) {
    if (script.launches[i].variable != name) continue;
    Launch launch = script.launches[i];
    launch.line = command.line;
    launch.variable.clear();
    launch.is_by_variable = true;
    launch.is_background = command.is_background;
    launch.is_in_braces = command.is_in_braces;
    launch.program.insert(launch.program.end(), words.begin() + 1, words.end());
    script.launches.push_back(std::move(launch));
  }
}

void keep_launches(JobScript& script) {
  keep_launchers(script);
  const std::size_t n_held = script.launches.size();
  for (const Launch& launch : script.launches) script.known.forget(launch.variable);  // each is judged where it is set
  std::size_t n_words = 0;
  for (const Command& command : script.commands) {
    const std::size_t n_before = script.launches.size();
    std::vector<std::string> words = script.known.fill_in(command.words);
    keep_launch_by_variable(command, words, n_held, script);
    for (int i = 0; i < most_nested; ++i) {
      auto launch = read_launch(words, command.line);
      if (!launch) break;
      launch->is_background = command.is_background;
      launch->is_in_braces = command.is_in_braces;
      launch->is_within = i > 0;
      words = launch->program;
      script.launches.push_back(std::move(*launch));
    }
    for (std::size_t i = n_before; i < script.launches.size(); ++i) n_words += 1 + script.launches[i].program.size();
    if (n_words <= most_launched_words) continue;
    script.unread.full_line = command.line;
    return;
  }
}

}  // namespace

JobScript read_job_script(std::string_view text) {
  JobScript script;
  Parts parts{script};
  script.has_order_mark = text.starts_with("\xef\xbb\xbf");
  if (script.has_order_mark) text.remove_prefix(3);
  script.has_interpreter = text.starts_with("#!");
  script.commands = read_commands(text, &script.unread);
  const auto is_here_text = [&unread = script.unread](int line) {
    return static_cast<std::size_t>(line) < unread.is_here_text.size() &&
           unread.is_here_text[static_cast<std::size_t>(line)];
  };
  int number = 0;
  for (const std::string_view line : split(text, '\n')) {
    if (!is_here_text(++number)) parts.read_line(line, number);
    const bool has_mac_end = number == 1 && line.find('\r') != line.npos;  // all of the script is one line then
    if (script.dos_line == 0 && (has_mac_end || line.ends_with('\r'))) script.dos_line = number;
  }
  for (const Command& command : script.commands) keep_variables(command, script);
  drop_exported(script);
  script.known = KnownValues{script.variables};
  keep_launches(script);
  return script;
}

const Flag* directive(const JobScript& script, std::string_view name) { return last_of(script.directives, name); }

std::string_view sourced_library(const JobScript& script) {
  for (const Command& command : script.commands) {
    if (command.words.size() < 2 || (command.words[0] != "." && command.words[0] != "source")) continue;
    std::string_view path = command.words[1];
    if (!path.ends_with(".sh")) continue;
    path.remove_suffix(3);
    const std::string_view name = file_name(path);
    if (path.substr(0, path.size() - name.size()).ends_with("lib/")) return name;
  }
  return {};
}

std::optional<Line> find_mark(const JobScript& script, std::string_view key) {
  for (const Line& comment : script.comments) {
    std::string_view text = trim(trim(comment.text).substr(1));
    if (!text.starts_with(own_mark)) continue;
    text = trim(text.substr(own_mark.size()));
    if (!text.starts_with(key)) continue;
    text.remove_prefix(key.size());
    if (text.starts_with('=') || text.starts_with(' ')) return Line{comment.line, std::string{trim(text.substr(1))}};
  }
  return std::nullopt;
}

}  // namespace lockstep::site

#include "site/launch.hpp"

#include <algorithm>
#include <utility>

#include "site/known_values.hpp"
#include "site/text.hpp"

namespace lockstep::site {
namespace {

using Words = std::span<const std::string>;

bool is_assignment(std::string_view word) {
  const std::string_view name = assigned_name(word);
  return !name.empty() && word.size() > name.size() && word[name.size()] == '=';
}

/// command -v and command -V say where a program is, and start nothing.
bool asks_for_path(Words words) {
  return words.size() > 1 && words[0] == "command" && words[1].starts_with('-') &&
         words[1].find_first_of("vV") != std::string::npos;
}

/// Flags and values of a row of [wrappers] at the beginning of `words`.
std::size_t n_of_wrapper(const Rows::value_type& wrapper, Words words) {
  std::size_t n = 0;
  for (long n_left = whole_number(wrapper[1]).value_or(0); n < words.size(); ++n) {
    const std::string_view word = words[n];
    if (!word.starts_with('-') && n_left-- == 0) break;
    if (word == "--") return n + 1 + static_cast<std::size_t>(std::max(n_left, 0L));
    if (word.starts_with('-') && is_one_of(word.substr(word.starts_with("--") ? 2 : 1), wrapper[2])) ++n;
  }
  return n;
}

/// Words before the launcher that change nothing about it.
std::size_t n_wrapping(Words words) {
  std::size_t n = 0;
  while (n < words.size()) {
    const auto* const wrapper = option_row("wrappers", file_name(words[n]));
    if (is_assignment(words[n])) {
      ++n;
    } else if (wrapper == nullptr || asks_for_path(words.subspan(n))) {
      break;
    } else {
      n += 1 + n_of_wrapper(*wrapper, words.subspan(n + 1));
    }
  }
  return std::min(n, words.size());
}

/// The launcher that `words` begin with; `n` becomes the number of words that say so.
Launcher launcher_of(Words words, std::size_t& n) {
  n = 1;
  if (words.empty()) return Launcher::none;
  std::string_view program = file_name(words[0]);
  if (program.starts_with("python")) {  // -m MODULE
    while (n + 1 < words.size() && words[n].starts_with('-') && words[n] != "-m") ++n;
    if (n + 1 < words.size() && words[n] == "-m") program = words[std::exchange(n, n + 2) + 1];
  }
  if (program == "accelerate" && (n >= words.size() || words[n++] != "launch")) return Launcher::none;
  if (program == "launch" && words[0] != program) return Launcher::none;
  const auto is_it = [program](const auto& row) { return row[0] == program || is_one_of(program, row[1]); };
  const Rows& all = option_rows("launchers");
  const auto found = std::ranges::find_if(all, is_it);
  return found == all.end() ? Launcher::none : static_cast<Launcher>(found - all.begin() + 1);
}

OptionSet set_of(Launcher launcher) {
  if (launcher == Launcher::srun) return OptionSet::slurm;
  return launcher == Launcher::mpirun || launcher == Launcher::mpiexec ? OptionSet::mpi : OptionSet::torch;
}

}  // namespace

std::string_view name(Launcher launcher) {
  return launcher == Launcher::none ? "" : option_rows("launchers")[static_cast<std::size_t>(launcher) - 1][0];
}

std::optional<Launch> read_launch(Words words, int line) {
  words = unwrapped(words);
  std::size_t n_used = 0;
  Launch launch{.line = line, .launcher = launcher_of(words, n_used)};
  if (launch.launcher == Launcher::none) return std::nullopt;
  const Words rest = words.subspan(n_used);
  n_used = 0;
  if (launch.launcher != Launcher::launch) launch.flags = read_flags(rest, set_of(launch.launcher), line, n_used);
  if (n_used < rest.size() && rest[n_used] == "--") ++n_used;
  launch.program.assign(rest.begin() + static_cast<std::ptrdiff_t>(n_used), rest.end());
  return launch;
}

Words unwrapped(Words words) { return words.subspan(n_wrapping(words)); }

bool starts(Words words, std::string_view name) {
  words = unwrapped(words);
  while (!words.empty() && is_expansion(words[0])) words = unwrapped(words.subspan(1));
  if (words.empty() || file_name(words[0]) == name) return !words.empty();
  const bool starts_another =
      option_row("starters", file_name(words[0])) != nullptr || words[0].starts_with("./") || words[0].ends_with(".sh");
  return starts_another && runs(words.subspan(1), name);
}

bool runs(Words words, std::string_view name) {
  return std::ranges::any_of(words, [name](const std::string& word) { return file_name(word) == name; });
}

bool has_word(Words words, std::string_view word) { return std::ranges::find(words, word) != words.end(); }

std::optional<std::string_view> argument(Words words, std::string_view flag) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == flag) return i + 1 < words.size() ? std::string_view{words[i + 1]} : "";
    if (word.starts_with(flag) && word.substr(flag.size()).starts_with('=')) return word.substr(flag.size() + 1);
  }
  return std::nullopt;
}

bool is_mpi_launcher(Launcher launcher) {
  return launcher == Launcher::srun || launcher == Launcher::mpirun || launcher == Launcher::mpiexec;
}

bool starts_ranks(const Launch& launch) {
  return is_mpi_launcher(launch.launcher) || launch.launcher == Launcher::launch;
}

bool is_torch(Launcher launcher) { return launcher >= Launcher::torchrun && launcher <= Launcher::deepspeed; }

const Flag* flag_of(const Launch& launch, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    if (const Flag* const flag = last_of(launch.flags, name)) return flag;
  return nullptr;
}

std::optional<long> count_of(const Launch& launch, std::initializer_list<std::string_view> names) {
  const Flag* const flag = flag_of(launch, names);
  return flag != nullptr ? whole_number(flag->text()) : std::nullopt;
}

bool is_small_command(const Launch& launch) {
  if (launch.program.empty()) return launch.variable.empty();
  return option_row("small", file_name(launch.program.front())) != nullptr;
}

}  // namespace lockstep::site

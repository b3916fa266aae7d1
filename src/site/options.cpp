#include "site/options.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "site/text.hpp"

namespace lockstep::site {
namespace {

constexpr std::string_view option_table =
#include "site/option_table.txt"
    ;

/// The value whose name, in the order of their type, is `name`.
template <class Enum>
Enum named(std::string_view names, std::string_view name) {
  const auto all = split_words(names);
  return static_cast<Enum>(std::ranges::find(all, name) - all.begin());
}

/// `word` as the table has it; `like_it` has what all of its line are.
Option read_option(std::string_view word, Option like_it) {
  if (const std::size_t gone = word.find('<'); gone != word.npos) {
    const auto parts = split(word.substr(gone + 1), '=');
    like_it.until = parts[0];
    like_it.instead = parts[1];
    word = word.substr(0, gone);
  }
  like_it.is_new = word.ends_with('+');
  if (like_it.is_new) word.remove_suffix(1);
  const std::size_t colon = word.find(':');
  if (colon != word.npos) like_it.letter = word.front();
  like_it.name = word.ends_with(':') ? word.substr(0, 1) : word.substr(colon + 1);  // npos + 1 is 0
  return like_it;
}

/// Those of the table below [`set`].
std::vector<Option> read_options(std::string_view set) {
  std::vector<Option> options;
  for (const auto& row : option_rows(set)) {
    const std::size_t equals = std::min(row[0].find(" = "), row[0].size());
    const auto parts = split_words(row[0].substr(0, equals));
    const Option like_it{.of = named<Of>("both sbatch srun qsub job chunk host", parts[0]),
                         .takes = named<Takes>("nothing maybe value two", parts[1]),
                         .form = parts[2],
                         .words = row[0].substr(std::min(equals + 3, row[0].size()))};
    for (const std::string_view word : std::span{parts}.subspan(3)) options.push_back(read_option(word, like_it));
  }
  return options;
}

/// Returns the option of Slurm with this name, or the only one that begins so.
const Option* option_of_name(std::string_view name) {
  if (const Option* const option = find_option(OptionSet::slurm, name)) return option;
  const auto& options = options_of(OptionSet::slurm);
  const auto begins_so = [name](const Option& option) { return !name.empty() && option.name.starts_with(name); };
  const auto found = std::ranges::find_if(options, begins_so);
  return std::ranges::count_if(options, begins_so) == 1 ? &*found : nullptr;
}

/// Takes the flag that begins with words[at]; sets `at` to what comes after it.
Flag read_flag(std::span<const std::string> words, std::size_t& at, OptionSet set, int line) {
  const bool takes_any_dashes = set == OptionSet::mpi || set == OptionSet::torch;
  const std::string_view word = words[at++];
  const bool is_long = takes_any_dashes || word.starts_with("--");
  const std::size_t equals = is_long ? word.find('=') : word.npos;
  const std::string_view typed = is_long ? word.substr(0, equals) : word.substr(0, 2);
  Flag flag{
      .line = line, .typed = std::string{typed}, .name = std::string{typed.substr(typed.starts_with("--") ? 2 : 1)}};
  if (set == OptionSet::torch) std::ranges::replace(flag.name, '-', '_');
  const Option* const option = !is_long                  ? find_by(options_of(set), word[1], &Option::letter)
                               : set == OptionSet::slurm ? option_of_name(flag.name)
                                                         : find_option(set, flag.name);
  flag.is_known = option != nullptr;
  if (option != nullptr) flag.name = option->name;
  const Takes takes = option != nullptr ? option->takes : set == OptionSet::mpi ? Takes::nothing : Takes::value;
  const bool has_next = at < words.size() && (option != nullptr || !words[at].starts_with('-'));
  if (equals != word.npos) {
    flag.value = std::string{word.substr(equals + 1)};
  } else if (!is_long && word.size() > 2 && takes != Takes::nothing) {
    flag.value = std::string{word.substr(2)};
  } else if (takes == Takes::two && at + 1 < words.size()) {
    flag.value = words[at] + "=" + words[at + 1];
    at += 2;
  } else if (takes == Takes::value && has_next) {
    flag.value = words[at++];
  }
  return flag;
}

}  // namespace

const std::vector<Option>& options_of(OptionSet set) {
  static const std::array all{read_options("slurm"), read_options("qsub"), read_options("mpirun"),
                              read_options("torch"), read_options("resources")};
  return all[static_cast<std::size_t>(set)];
}

const Option* find_option(OptionSet set, std::string_view name) {
  return find_by(options_of(set), name, &Option::name);
}

const Rows& option_rows(std::string_view section) {
  thread_local std::map<std::string_view, Rows> read;  // the table never changes; each thread has its own rows
  const auto [found, is_new] = read.try_emplace(section);
  if (is_new) found->second = rows_below(option_table, section);
  return found->second;
}

const Rows::value_type* option_row(std::string_view section, std::string_view name) {
  return find_by(option_rows(section), true, [name](const auto& row) { return is_one_of(name, row[0]); });
}

std::vector<Flag> read_flags(std::span<const std::string> words, OptionSet set, int line, std::size_t& n_used) {
  std::vector<Flag> flags;
  std::size_t at = 0;
  while (at < words.size() && words[at].size() >= 2 && words[at].starts_with('-') && words[at] != "--")
    flags.push_back(read_flag(words, at, set, line));
  n_used = at;
  return flags;
}

const Flag* last_of(const std::vector<Flag>& flags, std::string_view name) {
  return find_last_by(flags, name, &Flag::name);
}

}  // namespace lockstep::site

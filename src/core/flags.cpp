#include "core/flags.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "core/suggest.hpp"

namespace lockstep::core {
namespace {

// A required word, or all remaining words.
struct Positional {
  std::string title;
  std::function<void(const std::string&)> take;
};

// A line of the help: a flag as it is shown, or only text.
struct HelpRow {
  std::string name{};  ///< for hide()
  std::string flag{};
  std::string text{};
  std::string by_default{};
};

constexpr std::size_t help_width = 120, default_column = 86;

// The first names of a flag, and the placeholder of its value.
std::string spelling_of(const std::string& flag) {
  const std::string letter = flag.starts_with("--") ? "" : flag.substr(0, 2) + ",";
  return fmt::format("  {:<3} {}{}", letter, long_name(flag), flag.substr(std::min(flag.find(' '), flag.size())));
}

std::string lines_of(const HelpRow& row, std::size_t column) {
  if (row.flag.empty()) return row.text;
  std::string lines, line = fmt::format("{:<{}}", row.flag, column - 1);
  const auto make_room = [&](std::size_t n) {
    if (line.size() + n <= help_width) return;
    lines += line + '\n';
    line = std::string(column - 1, ' ');
  };
  for (std::size_t begin = 0; begin < row.text.size();) {
    const std::size_t end = std::min(row.text.find(' ', begin), row.text.size());
    make_room(1 + end - begin);
    line += ' ' + row.text.substr(begin, end - begin);
    begin = end + 1;
  }
  if (!row.by_default.empty()) {
    const std::size_t width = row.by_default.size() + 2;
    make_room(2 + width);
    line = fmt::format("{:<{}}({})", line + "  ", std::min(default_column, help_width - width), row.by_default);
  }
  return lines + line + '\n';
}

// Splits "--val=" into "--val" and "", because the parser would take the next argument for the value.
std::vector<std::string> split_empty_values(const std::vector<std::string>& arguments) {
  std::vector<std::string> words;
  for (const std::string& argument : arguments) {
    const bool is_empty = argument.starts_with("--") && argument.find('=') == argument.size() - 1;
    words.push_back(is_empty ? argument.substr(0, argument.size() - 1) : argument);
    if (is_empty) words.emplace_back();
  }
  return words;
}

// Rewords the parser's "--val: 1 required TEXT missing" for users; leaves other messages unchanged.
std::string reword(const std::string& message) {
  if (!message.ends_with(" required TEXT missing")) return message;
  return fmt::format("{} needs a value", message.substr(0, message.find(':')));
}

std::string_view without_dashes(std::string_view flag) {
  return flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
}

// The flag of `flags` that `word` likely means. Dashes do not count: `-x` is not near `-b`.
std::optional<std::string> near_flag(const std::vector<std::string>& flags, std::string_view word) {
  std::vector<std::string> bare;
  for (const std::string& flag : flags) bare.emplace_back(without_dashes(flag));
  const auto near = near_miss(without_dashes(word), bare);
  if (!near) return std::nullopt;
  return flags[static_cast<std::size_t>(std::find(bare.begin(), bare.end(), *near) - bare.begin())];
}

// Words that have another name, rather than misspelt ones.
constexpr std::array<std::array<std::string_view, 2>, 2> also_known{{{"gpu", "cuda"}, {"cpu", "host"}}};

std::optional<std::string> meant_by(std::string_view word, const std::vector<std::string>& candidates) {
  for (const auto& [name, known_as] : also_known)
    if (word == name && std::ranges::find(candidates, known_as) != candidates.end()) return std::string{known_as};
  return near_miss(word, candidates);
}

}  // namespace

struct Flags::State {
  explicit State(std::string the_usage) : usage{std::move(the_usage)} {}

  CLI::App app{"lockstep"};
  std::string usage;
  std::vector<Positional> positionals{};
  Positional rest{};
  std::size_t least_rest = 0;
  std::vector<std::string> typed_words{};
  std::vector<HelpRow> rows{};

  void distribute();
};

void Flags::State::distribute() {
  const std::size_t n_required = positionals.size() + least_rest;
  if (typed_words.size() < n_required) {
    const std::string& title =
        typed_words.size() < positionals.size() ? positionals[typed_words.size()].title : rest.title;
    fail_usage({.what = title + " is missing", .where = "", .expected = usage, .fix = "--help explains it"});
  }
  for (std::size_t i = 0; i < typed_words.size(); ++i) {
    if (i < positionals.size())
      positionals[i].take(typed_words[i]);
    else if (rest.take)
      rest.take(typed_words[i]);
    else
      fail_usage({.what = fmt::format("unexpected argument '{}'", typed_words[i]),
                  .where = "",
                  .expected = usage,
                  .fix = "--help explains it"});
  }
}

void fail_unknown(std::string_view kind, std::string_view word, std::string_view where,
                  const std::vector<std::string>& candidates) {
  const auto near = meant_by(word, candidates);
  fail_usage({.what = fmt::format("unknown {} '{}'", kind, word),
              .where = std::string{where},
              .expected = "one of " + join(candidates),
              .fix = near ? fmt::format("did you mean '{}'?", *near) : ""});
}

std::string long_name(const std::string& flag) {
  const std::size_t start = flag.find("--");
  return flag.substr(start, flag.find_first_of(", ", start) - start);
}

Help Help::or_default(std::string value) const {
  Help help = *this;
  if (help.by_default.empty()) help.by_default = std::move(value);
  return help;
}

Flags::Flags(std::string usage) : state_{std::make_unique<State>(std::move(usage))} {
  state_->app.set_help_flag();
  state_->app.allow_extras();
  state_->app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

Flags::~Flags() = default;

void Flags::value(const std::string& flag, const Help& help, OnValue on_value) {
  state_->app.add_option_function<std::string>(flag.substr(0, flag.find(' ')), on_value);
  mention(flag, help);
}

void Flags::text(const std::string& flag, std::string& target, const Help& help) {
  value(flag, help.or_default(target), [&target, flag](const std::string& text) {
    if (text.empty()) fail_usage({.what = "an empty value", .where = long_name(flag), .expected = "a name", .fix = ""});
    target = text;
  });
}

void Flags::toggle(const std::string& flag, bool& target, const Help& help) {
  state_->app.add_flag(flag, target);
  mention(flag, help);
}

void Flags::action(const std::string& flag, const Help& help, std::function<void()> on_flag) {
  state_->app.add_flag_callback(flag, std::move(on_flag));
  mention(flag, help);
}

void Flags::bytes(const std::string& flag, Bytes& target, const Help& help) {
  value(flag, help.or_default(format_bytes(target)),
        [&target, flag](const std::string& text) { target = parse_bytes(text, long_name(flag)); });
}

void Flags::seconds(const std::string& flag, Seconds& target, const Help& help) {
  value(flag, help.or_default(fmt::format("{}s", target.value)),
        [&target, flag](const std::string& text) { target = parse_seconds(text, long_name(flag)); });
}

void Flags::note(std::string_view lines, std::string_view name) {
  state_->rows.push_back({.name = std::string{name}, .text = std::string{lines}});
}

void Flags::heading(std::string_view title) { note(fmt::format("{:<{}}(default)\n", title, default_column)); }

void Flags::mention(const std::string& flag, const Help& help) {
  if (!help.text.empty()) state_->rows.push_back({long_name(flag), spelling_of(flag), help.text, help.by_default});
}

void Flags::hide(std::string_view name) {
  std::erase_if(state_->rows, [name](const HelpRow& row) { return row.name == name; });
}

std::string Flags::help(std::size_t column) const {
  std::string text;
  for (const HelpRow& row : state_->rows) text += lines_of(row, column);
  return text;
}

void Flags::word(const std::string& title, std::string& target) {
  state_->positionals.push_back({title, [&target](const std::string& text) { target = text; }});
}

void Flags::words(const std::string& title, std::vector<std::string>& target, std::size_t least) {
  state_->rest = {title, [&target](const std::string& text) { target.push_back(text); }};
  state_->least_rest = least;
}

void Flags::parse(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = split_empty_values(arguments);
  std::ranges::reverse(words);  // CLI11 takes a vector in reverse
  try {
    state_->app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    fail_usage({.what = reword(error.what()), .where = "", .expected = "", .fix = "--help lists all flags"});
  }
  state_->typed_words.clear();
  for (const std::string& extra : state_->app.remaining()) {
    if (!extra.starts_with('-') || extra == "-") {
      if (extra != "--") state_->typed_words.push_back(extra);
      continue;
    }
    const std::string flag = extra.substr(0, extra.find('='));
    const auto near = near_flag(names(), flag);
    fail_usage({.what = fmt::format("unknown flag '{}'", flag),
                .where = "",
                .expected = "",
                .fix = near ? fmt::format("did you mean '{}'? --help lists all", *near) : "--help lists all flags"});
  }
  state_->distribute();
}

bool Flags::has(const std::string& flag) const { return state_->app.count(flag) > 0; }

void Flags::require(const std::string& flag, std::string_view what) const {
  if (has(flag)) return;
  fail_usage(
      {.what = flag + " is missing", .where = "", .expected = fmt::format("{} {}", flag, what), .fix = state_->usage});
}

std::vector<std::string> Flags::names() const {
  std::vector<std::string> names;
  for (const CLI::Option* option : state_->app.get_options()) {
    for (const std::string& word : option->get_lnames()) names.push_back("--" + word);
    for (const std::string& letter : option->get_snames()) names.push_back("-" + letter);
  }
  return names;
}

}  // namespace lockstep::core

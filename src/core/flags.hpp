// The flags and words of one command, declared once: parsing, help, refusals with near misses, and which were given.
// Invariant: any wrong input is an Error (usage) that names the flag; only flags.cpp uses CLI11.
// Used by both programs.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/units.hpp"

namespace lockstep::core {

/// Throws Error (usage): "unknown KIND 'WORD'", the candidates, and the nearest of them.
[[noreturn]] void fail_unknown(std::string_view kind, std::string_view word, std::string_view where,
                               const std::vector<std::string>& candidates);

/// Common functions of the tables of names (verbs, importers, filters, ...).
template <class Table>
[[nodiscard]] std::vector<std::string> names_of(const Table& table) {
  std::vector<std::string> names;
  for (const auto& entry : table) {
    if constexpr (requires { entry.name; })
      names.emplace_back(entry.name);
    else if constexpr (std::is_convertible_v<decltype(entry), std::string_view>)
      names.emplace_back(entry);
    else
      names.emplace_back(name(entry));
  }
  return names;
}

/// Returns the entry of `table` called `word`.
template <class Table>
const auto& find_named(const Table& table, std::string_view word, std::string_view kind, std::string_view where) {
  const std::vector<std::string> names = names_of(table);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == word) return table[i];
  }
  fail_unknown(kind, word, where, names);
}

/// What the help says of a flag.
struct Help {
  Help() = default;  ///< not listed
  Help(const char* the_text, std::string_view the_default = "") : Help(std::string{the_text}, the_default) {}
  Help(std::string the_text, std::string_view the_default = "") : text{std::move(the_text)}, by_default{the_default} {}

  std::string text{};
  std::string by_default{};  ///< shown in parentheses; empty: the value that the target has when it is declared

  [[nodiscard]] Help or_default(std::string value) const;
};

class Flags {
 public:
  using OnValue = std::function<void(const std::string& text)>;

  /// `usage`: "lockstep shard head FOLDER [flags]", shown when a word is missing.
  explicit Flags(std::string usage);
  ~Flags();
  Flags(const Flags&) = delete;
  Flags& operator=(const Flags&) = delete;

  /// `flag` is "--name", "-n,--name" or, with another name that messages do not use, "-n,--name,--other". A blank and
  /// a placeholder of its value may follow, for the help. `on_value` may throw Error. The last of several occurrences
  /// counts.
  void value(const std::string& flag, const Help& help, OnValue on_value);
  void value(const std::string& flag, OnValue on_value) { value(flag, {}, std::move(on_value)); }
  void text(const std::string& flag, std::string& target, const Help& help = {});
  void toggle(const std::string& flag, bool& target, const Help& help = {});
  /// Calls `on_flag` if `flag`, which takes no value, was typed.
  void action(const std::string& flag, const Help& help, std::function<void()> on_flag);
  void bytes(const std::string& flag, Bytes& target, const Help& help = {});
  void seconds(const std::string& flag, Seconds& target, const Help& help = {});
  template <class Number>
  void number(const std::string& flag, Number& target, Number least, Number most, const Help& help = {});
  /// Accepts one entry of `table`, by its name().
  template <class Enum, class Table>
  void choice(const std::string& flag, std::string_view kind, Enum& target, const Table& table, const Help& help = {});

  /// Adds to the help: lines as they are, with a name for hide(); a title; or a flag that another parser takes.
  void note(std::string_view lines, std::string_view name = "");
  void heading(std::string_view title);
  void mention(const std::string& flag, const Help& help);
  /// Takes a flag ("--name") or a note out of the help.
  void hide(std::string_view name);

  /// Declares words without a flag, in order; each is required.
  void word(const std::string& title, std::string& target);
  /// Declares all further words, at least `least`; only after word().
  void words(const std::string& title, std::vector<std::string>& target, std::size_t least);

  void parse(const std::vector<std::string>& arguments);

  /// After parse(): returns whether `flag` ("--name") was typed.
  [[nodiscard]] bool has(const std::string& flag) const;
  /// Throws Error (usage) unless `flag` was typed; `what` says what it is for.
  void require(const std::string& flag, std::string_view what) const;
  /// Lists the flags in the order of their declarations, with texts from `column` on.
  [[nodiscard]] std::string help(std::size_t column = 25) const;
  /// Returns every spelling, "--name" and "-n".
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns "--number" for "-n,--number,--count N".
[[nodiscard]] std::string long_name(const std::string& flag);

/// Why `text` is not a Number: "-3 is out of range" also if a type without a sign cannot hold it.
template <class Number>
std::string describe_no_number(std::string_view text, std::errc status) {
  const bool is_whole = std::is_integral_v<Number>;
  const bool is_negative =
      is_whole && text.size() > 1 && text.front() == '-' && text.find_first_not_of("0123456789", 1) == text.npos;
  if (status == std::errc::result_out_of_range || status == std::errc{} || is_negative)
    return fmt::format("{} is out of range", text);
  return fmt::format("'{}' is not a {}number", text, is_whole ? "whole " : "");
}

/// Throws Error (usage) unless `text` is a number from `least` to `most`; `expected` replaces the default text.
template <class Number>
Number parse_number(const std::string& text, const std::string& flag, Number least, Number most,
                    const std::string& expected = "") {
  Number value{};
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size()) status = std::errc::invalid_argument;
  if (status == std::errc{} && value >= least && value <= most) return value;
  fail_usage({.what = describe_no_number<Number>(text, status),
              .where = flag,
              .expected = expected.empty() ? fmt::format("a number from {} to {}", least, most) : expected,
              .fix = ""});
}

template <class Number>
void Flags::number(const std::string& flag, Number& target, Number least, Number most, const Help& help) {
  value(flag, help.or_default(fmt::format("{}", target)), [&target, flag, least, most](const std::string& text) {
    target = parse_number(text, long_name(flag), least, most);
  });
}

template <class Enum, class Table>
void Flags::choice(const std::string& flag, std::string_view kind, Enum& target, const Table& table, const Help& help) {
  value(flag, help.or_default(std::string{name(target)}), [&target, &table, flag, kind](const std::string& text) {
    target = find_named(table, text, kind, long_name(flag));
  });
}

}  // namespace lockstep::core

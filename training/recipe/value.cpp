#include "training/recipe/value.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <type_traits>

#include "core/flags.hpp"
#include "core/suggest.hpp"
#include "data/augment/augment.hpp"
#include "training/recipe/words.hpp"

namespace lockstep::training {
namespace {

using Lengths = std::vector<Length>;

template <class T>
constexpr bool is_whole = std::is_integral_v<T> && !std::is_same_v<T, bool>;

std::string_view name(Form form) {
  switch (form) {
    case Form::word: return "a word";
    case Form::boolean: return "a boolean";
    case Form::integer: return "a whole number";
    case Form::real: return "a number with a fraction";
    case Form::text: return "a text";
    case Form::list: return "a list";
    case Form::nested_list: return "a list of lists";
    case Form::table: return "a section";
    case Form::date: return "a date or time";
  }
  return "";
}

template <class T>
bool takes(Form form) {
  if (form == Form::word) return true;
  if constexpr (std::is_same_v<T, bool>) return form == Form::boolean;
  if constexpr (is_whole<T>) return form == Form::integer;
  if constexpr (std::is_same_v<T, double>) return form == Form::integer || form == Form::real;
  if constexpr (std::is_same_v<T, std::string> || HasWords<T>) return form == Form::text;
  if constexpr (std::is_same_v<T, Lengths>)
    if (form == Form::list) return true;
  if constexpr (std::is_same_v<T, Length> || std::is_same_v<T, Lengths>)
    return form == Form::integer || form == Form::real || form == Form::text;
}

/// Ranges of whole numbers name both ends.
std::string describe_whole(const Range& range) { return fmt::format("from {:.0f} to {:.0f}", range.least, range.most); }

std::string describe(const Range& range) {
  const std::string least = fmt::format("{} {}", range.excludes_least ? "above" : "of at least", range.least);
  if (range.most >= 1e15) return least;
  if (!range.excludes_least && !range.excludes_most) return fmt::format("from {} to {}", range.least, range.most);
  const std::string from = fmt::format("{} {}", range.excludes_least ? "above" : "from", range.least);
  return fmt::format("{}{} {}", from, range.excludes_most ? " to below" : ", at most", range.most);
}

struct LengthUnit {
  std::string_view word;
  Length::Unit unit;
  double factor = 1;
};
constexpr std::array<LengthUnit, 11> length_units{{{"", Length::Unit::epochs},
                                                   {"epoch", Length::Unit::epochs},
                                                   {"epochs", Length::Unit::epochs},
                                                   {"sample", Length::Unit::samples},
                                                   {"samples", Length::Unit::samples},
                                                   {"s", Length::Unit::seconds},
                                                   {"seconds", Length::Unit::seconds},
                                                   {"min", Length::Unit::seconds, 60},
                                                   {"minutes", Length::Unit::seconds, 60},
                                                   {"h", Length::Unit::seconds, 3600},
                                                   {"hours", Length::Unit::seconds, 3600}}};

/// Schedules count samples, so that they are the same on any machine.
bool takes_time(const Key& key) {
  const auto* const length = std::get_if<Length Recipe::*>(&key.member);
  return length != nullptr && *length == &Recipe::save_every;
}

/// Converts one setting into a value; there is a read() for each type of member.
class Reader {
 public:
  Reader(const Key& key, const Setting& setting) : key_{key}, setting_{setting} {}

  void read(bool& value) const {
    if (setting_.text != "true" && setting_.text != "false") refuse(fmt::format("'{}'", setting_.text));
    value = setting_.text == "true";
  }

  template <class Integer>
  requires is_whole<Integer>
  void read(Integer& value) const {
    value = number<Integer>(setting_.text);
    check_range(static_cast<double>(value), setting_.text);
  }

  void read(double& value) const {
    value = number<double>(setting_.text);
    check_range(value, setting_.text);
  }

  void read(std::string& value) const {
    static_cast<void>(quote(setting_.text, setting_.origin.where));
    if (key_.names != nullptr)
      require_name();
    else if (key_.rule == TextRule::augmentation)
      static_cast<void>(data::parse_augment(setting_.text, setting_.origin.where));
    else if (key_.rule == TextRule::not_empty && setting_.text.empty())
      refuse("an empty text");
    value = setting_.text;
  }

  template <HasWords Value>
  void read(Value& value) const {
    static_cast<void>(quote(setting_.text, setting_.origin.where));
    value = value_of<Value>(setting_.text, key_.name, setting_.origin.where);
  }

  void read(Length& value) const { value = length(setting_.text); }

  void read(Lengths& values) const {
    values.clear();
    const std::string_view text = setting_.text;
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find(',', begin), text.size());
      values.push_back(length(text.substr(begin, end - begin)));
      begin = end + 1;
    }
  }

 private:
  [[noreturn]] void refuse(std::string what) const {
    core::fail_usage(
        {.what = std::move(what), .where = setting_.origin.where, .expected = expected_of(key_), .fix = ""});
  }

  // Parses all of `text` as a number of this type.
  template <class Number>
  Number number(std::string_view text) const {
    Number value{};
    auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (end != text.data() + text.size()) status = std::errc::invalid_argument;
    if (status != std::errc{}) refuse(core::describe_no_number<Number>(text, status));
    return value;
  }

  void check_range(double value, std::string_view text) const {
    if (!key_.range.has(value)) refuse(fmt::format("{} is out of range", text));
  }

  void require_name() const {
    static_cast<void>(core::find_named(key_.names(), setting_.text, key_.name, setting_.origin.where));
  }

  // Parses "5", "2.5 epochs", "20000 samples", and "30 min" for keys that accept times; the blank may be missing.
  [[nodiscard]] Length length(std::string_view text) const {
    const std::string_view trimmed = text.substr(std::min(text.find_first_not_of(' '), text.size()));
    Length length;
    const auto [end, status] = std::from_chars(trimmed.data(), trimmed.data() + trimmed.size(), length.value);
    const std::string_view rest = trimmed.substr(static_cast<std::size_t>(end - trimmed.data()));
    const std::string_view unit = rest.substr(std::min(rest.find_first_not_of(' '), rest.size()));
    const auto known = std::ranges::find(length_units, unit, &LengthUnit::word);
    const bool is_known = known != length_units.end() && (known->unit != Length::Unit::seconds || takes_time(key_));
    if (status != std::errc{} || !is_known) refuse(fmt::format("'{}' is not a length", text));
    check_range(length.value, text);
    length.unit = known->unit;
    length.value *= known->factor;
    if (length.unit == Length::Unit::samples && length.value != std::floor(length.value))
      refuse(fmt::format("'{}' is not a whole number", text));
    return length;
  }

  const Key& key_;
  const Setting& setting_;
};

std::string write(bool value) { return value ? "true" : "false"; }

template <class Number>
requires is_whole<Number> std::string write(Number value) { return fmt::format("{}", value); }

std::string write(double value) { return fmt::format("{}", value); }
std::string write(const std::string& value) { return quote(value, ""); }

template <HasWords Value>
std::string write(Value value) {
  return write(std::string{word_of(value)});
}

std::string write(const Length& length) {
  if (length.unit == Length::Unit::epochs) return write(length.value);
  return length.unit == Length::Unit::samples ? fmt::format("\"{:.0f} samples\"", length.value)
                                              : fmt::format("\"{} s\"", length.value);
}

std::string write(const Lengths& lengths) {
  std::vector<std::string> items;
  for (const Length& length : lengths) items.push_back(write(length));
  return fmt::format("[{}]", core::join(items));
}

/// Calls `visit` with the value of `key` in `recipe`.
template <class AnyRecipe, class Visit>
auto with_value(const Key& key, AnyRecipe& recipe, Visit visit) {
  return std::visit([&](auto member) { return visit(value_at(member, recipe)); }, key.member);
}

template <class T>
std::string expected_value(const Key& key) {
  if constexpr (std::is_same_v<T, bool>) return "true or false";
  if constexpr (is_whole<T>) return "a whole number " + describe_whole(key.range);
  if constexpr (std::is_same_v<T, double>) return "a number " + describe(key.range);
  if constexpr (std::is_same_v<T, Length>)
    return fmt::format("a number of epochs {}, or samples as in '20000 samples'{}", describe(key.range),
                       takes_time(key) ? ", or a time as in '30 min'" : "");
  if constexpr (std::is_same_v<T, Lengths>)
    return "numbers of epochs, or samples as in '20000 samples', separated by commas";
  if (const auto words = words_of(key); !words.empty()) return "one of " + core::join(words);
  return key.rule == TextRule::augmentation ? "steps such as \"crop:32:4,flip\"" : "a text in quotes";
}

}  // namespace

std::string expected_of(const Key& key) {
  const Recipe any;
  return with_value(key, any,
                    [&key](const auto& value) { return expected_value<std::remove_cvref_t<decltype(value)>>(key); });
}

void assign(const Key& key, const Setting& setting, Recipe& recipe) {
  with_value(key, recipe, [&]<class T>(T& value) {
    if (!takes<T>(setting.form))
      core::fail_usage(
          {.what = fmt::format("{} is {}", key.name, name(setting.form)),
           .where = setting.origin.where,
           .expected = expected_of(key),
           .fix = setting.form == Form::table ? "a recipe has no [sections]: write all keys at the top level" : ""});
    Reader{key, setting}.read(value);
  });
}

std::string to_toml(const Key& key, const Recipe& recipe) {
  return with_value(key, recipe, [](const auto& value) { return write(value); });
}

std::string to_word(const Key& key, const Recipe& recipe) {
  return with_value(key, recipe, []<class T>(const T& value) {
    if constexpr (HasWords<T>) return std::string{word_of(value)};
    if constexpr (std::is_same_v<T, std::string>) return value;
    return write(value);
  });
}

bool is_set(const Key& key, const Recipe& recipe) {
  return with_value(key, recipe, [&key]<class T>(const T& value) {
    if constexpr (std::is_same_v<T, bool>) return value;
    if constexpr (is_whole<T>) return key.range.has(static_cast<double>(value));
    if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, Lengths>) return !value.empty();
    return true;
  });
}

void unset(const Key& key, Recipe& recipe) {
  with_value(key, recipe, []<class T>(T& value) { value = T{}; });
}

void copy_value(const Key& key, const Recipe& from, Recipe& to) {
  std::visit([&](auto member) { value_at(member, to) = value_at(member, from); }, key.member);
}

std::string quote(const std::string& text, const std::string& where) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  const bool has_control = std::any_of(text.begin(), text.end(), is_control);
  try {
    if (!has_control) return nlohmann::json(text).dump();  // without control characters, a JSON string is a TOML string
  } catch (const nlohmann::json::type_error&) {
    // not UTF-8
  }
  core::fail_usage({.what = has_control ? "a control character in a text" : "a text that is not UTF-8",
                    .where = where,
                    .expected = "a text of one line in UTF-8",
                    .fix = ""});
}

}  // namespace lockstep::training

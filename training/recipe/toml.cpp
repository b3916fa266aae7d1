#include "training/recipe/toml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/characters.hpp"
#include "core/error.hpp"
#include "core/suggest.hpp"
#include "training/toml_library.hpp"

namespace lockstep::training {
namespace {

struct Written {
  Form form;
  std::string text;
};

Written read(const toml::node& node);

// For a list of numbers and texts: the items, separated by commas.
Written read(const toml::array& array) {
  std::vector<std::string> items;
  for (const toml::node& node : array) {
    const Written item = read(node);
    if (node.is_array() || node.is_table()) return {Form::nested_list, {}};
    items.push_back(item.text);
  }
  return {Form::list, core::join(items, ",")};
}

Written read(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::boolean: return {Form::boolean, node.as_boolean()->get() ? "true" : "false"};
    case toml::node_type::integer: return {Form::integer, fmt::format("{}", node.as_integer()->get())};
    case toml::node_type::floating_point: return {Form::real, fmt::format("{}", node.as_floating_point()->get())};
    case toml::node_type::string: return {Form::text, node.as_string()->get()};
    case toml::node_type::array: return read(*node.as_array());
    case toml::node_type::table: return {Form::table, {}};
    default: return {Form::date, {}};
  }
}

std::string where(const std::string& file, const toml::source_position& at) {
  return fmt::format("{}:{}:{}", file, at.line, at.column);
}

/// Scans the text and refuses what no recipe needs before toml++ sees it: texts of several lines, tables, non-ASCII
/// characters outside comments and texts, and quotes where no text begins, because toml++ continues in a word such as
/// 1=2="x". Up to 3.4 some such characters are undefined behaviour there (its issues 190 and 295).
class Scan {
 public:
  Scan(std::string_view text, const std::string& file) : text_{text}, file_{file} {}

  void run() {
    if (text_.starts_with("\xef\xbb\xbf")) text_.remove_prefix(3);  // byte order mark
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#')
        at_ = end_of_line();
      else if (c == '"' || c == '\'')
        skip_text(c);
      else if (c == '{' || (c == '[' && begins_line()))
        fail("a table", "keys only; a recipe has no [sections]");
      else if (static_cast<unsigned char>(c) >= 0x80)
        fail(core::name_of_first(text_.substr(at_)) + ", a non-ASCII character outside texts and comments",
             "plain letters, and quotes as \" or '");
      else
        step_over(c);
    }
  }

 private:
  [[nodiscard]] std::size_t end_of_line() const { return std::min(text_.find('\n', at_), text_.size()); }

  [[nodiscard]] bool begins_line() const {
    const std::size_t last = text_.substr(0, at_).find_last_not_of(" \t");
    return last == std::string_view::npos || text_[last] == '\n';
  }

  /// A text may begin at the start of a line (a key), after its first '=' (a value), or in an array's brackets.
  void step_over(char c) {
    if (c == '=' && brackets_ > 0) {
      at_ = array_at_;
      fail("an array without an end", "values separated by commas, and a ] after the last");
    }
    if (c == '[' && brackets_ == 0) array_at_ = at_;
    // Each dot of a key is a table within a table, and toml++ recurses into them.
    n_dots_ = c == '\n' ? 0 : n_dots_ + (c == '.' && !has_equals_ ? 1 : 0);
    if (n_dots_ > most_dots) fail(fmt::format("a key with more than {} dots", most_dots), "keys without dots");
    ++at_;
    if (c == '\n' && brackets_ == 0) {
      text_may_begin_ = true;
      has_equals_ = false;
    } else if (c == '=') {
      text_may_begin_ = !has_equals_;
      has_equals_ = true;
    } else if (c == '[') {
      ++brackets_;
    } else if (c == ']') {
      brackets_ -= brackets_ > 0 ? 1 : 0;
      text_may_begin_ = false;
    } else if (c != ' ' && c != '\t' && c != '\r' && c != '\n') {
      text_may_begin_ = c == ',' && brackets_ > 0;
    }
  }

  void skip_text(char quote) {
    if (text_.substr(at_).starts_with(std::string(3, quote))) fail("a text of several lines", "a text on one line");
    if (!text_may_begin_) fail("a quote where no text begins", "texts that begin and end with a quote");
    const std::size_t begin = at_, end = end_of_line();
    for (++at_; at_ < end && text_[at_] != quote; ++at_)
      if (quote == '"' && text_[at_] == '\\') ++at_;
    if (at_ >= end) {
      at_ = begin;
      fail("a text without an end", fmt::format("a {} after it, on the same line", quote));
    }
    ++at_;
    text_may_begin_ = false;
  }

  [[noreturn]] void fail(std::string what, std::string expected) const {
    const std::string_view before = text_.substr(0, at_);
    const std::string_view line = before.substr(before.rfind('\n') + 1);
    const auto is_first_byte = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; };
    core::fail_usage({.what = std::move(what),
                      .where = fmt::format("{}:{}:{}", file_, 1 + std::count(before.begin(), before.end(), '\n'),
                                           1 + std::count_if(line.begin(), line.end(), is_first_byte)),
                      .expected = std::move(expected),
                      .fix = ""});
  }

  std::string_view text_;
  const std::string& file_;
  static constexpr int most_dots = 100;
  int n_dots_ = 0;
  std::size_t at_ = 0;
  std::size_t brackets_ = 0;  ///< open ones
  std::size_t array_at_ = 0;  ///< the first of them
  bool has_equals_ = false;   ///< in this line
  bool text_may_begin_ = true;
};

/// "put texts in quotes: model = \"toy\"" if line number `line` has a word without quotes; empty if not.
std::string quotes_for(std::string_view text, std::size_t line) {
  for (; line > 1; --line) text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  text = text.substr(0, text.find_first_of("#\r\n"));
  const std::size_t equals = text.find('=');
  if (equals == text.npos) return "";
  const auto trimmed = [](std::string_view part) {
    const std::size_t begin = std::min(part.find_first_not_of(" \t"), part.size());
    return part.substr(begin, part.find_last_not_of(" \t") + 1 - begin);
  };
  const std::string_view value = trimmed(text.substr(equals + 1));
  const bool is_like_number = value.find_first_of("0123456789+-.") == 0 && value.find('/') == value.npos;
  if (value.empty() || is_like_number || value.find_first_of("\"'[]{}=") != value.npos) return "";
  if (value == "True" || value == "False") return "write true or false in small letters";
  return fmt::format("put texts in quotes: {} = \"{}\"", trimmed(text.substr(0, equals)), value);
}

using Place = std::pair<toml::source_index, toml::source_index>;

Place place_of(const toml::source_position& at) { return {at.line, at.column}; }

toml::table parse(std::string_view text, const std::string& file) {
  const std::string expected = "a recipe in TOML: a line 'key = value' for each key";
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    core::fail_usage({.what = std::string{error.description()},
                      .where = where(file, error.source().begin),
                      .expected = expected,
                      .fix = quotes_for(text, error.source().begin.line)});
  } catch (const BrokenAssertion&) {
    core::fail_usage({.what = "brackets or signs that make no value", .where = file, .expected = expected, .fix = ""});
  }
}

}  // namespace

std::vector<Setting> read_toml(std::string_view text, const std::string& file) {
  Scan{text, file}.run();
  const toml::table table = parse(text, file);
  std::vector<std::pair<Place, Setting>> found;
  for (const auto& [key, node] : table) {
    Written written = read(node);
    const toml::source_position& at = node.source().begin;
    const std::string note = fmt::format("recipe {}:{}", std::filesystem::path{file}.filename().string(), at.line);
    found.push_back({place_of(key.source().begin),
                     {.key = std::string{key.str()},
                      .form = written.form,
                      .text = std::move(written.text),
                      .origin = {Level::file, note, fmt::format("{}, {}", key.str(), where(file, at)), true},
                      .key_where = where(file, key.source().begin)}});
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Setting> settings;
  for (auto& [place, setting] : found) settings.push_back(std::move(setting));
  return settings;
}

}  // namespace lockstep::training

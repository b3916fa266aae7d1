#include "site/known_values.hpp"

#include <algorithm>
#include <set>

#include "site/shell.hpp"
#include "site/text.hpp"

namespace lockstep::site {
namespace {

constexpr std::size_t longest_value = 1000;
constexpr int most_filled_depth = 4;  ///< of variables within variables

bool is_of_command(std::string_view value) { return value.find("$(") != value.npos || value.find('`') != value.npos; }

}  // namespace

std::string_view without_parentheses(std::string_view value) noexcept {
  const bool is_list = value.size() > 1 && value.starts_with('(') && value.ends_with(')');
  return is_list ? value.substr(1, value.size() - 2) : value;
}

std::string_view expanded_name(std::string_view word) noexcept {
  if (!word.starts_with('$')) return {};
  word.remove_prefix(1);
  const bool is_braced = word.starts_with('{');
  if (is_braced) word.remove_prefix(1);
  const std::string_view name = assigned_name(word);
  const std::string_view rest = word.substr(name.size());
  return (is_braced ? rest == "}" || rest == "[@]}" || rest == "[*]}" : rest.empty()) ? name : std::string_view{};
}

bool is_expansion(std::string_view word) noexcept {
  if (word.size() > 1 && word.front() == '`') return word.back() == '`';
  if (word.starts_with("$((")) return false;
  if (word.starts_with("$(")) return word.ends_with(')');
  if (word.starts_with("${")) return word.ends_with('}');
  const bool is_argument =
      word.size() == 2 && word[0] == '$' && std::string_view{"@*123456789"}.find(word[1]) != word.npos;
  return is_argument || !expanded_name(word).empty();
}

KnownValues::KnownValues(std::span<const Variable> variables) {
  std::set<std::string_view> unknown;
  for (const Variable& variable : variables) {
    const bool is_first = values_.emplace(variable.name, without_parentheses(variable.value)).second;
    if (!is_first || variable.value.size() > longest_value || is_of_command(variable.value))
      unknown.insert(variable.name);
  }
  for (const std::string_view name : unknown) forget(name);
}

void KnownValues::forget(std::string_view name) {
  if (const auto found = values_.find(name); found != values_.end()) values_.erase(found);
}

std::vector<std::string> KnownValues::fill_in(std::span<const std::string> words) {
  std::vector<std::string> filled;
  for (const std::string& word : words) fill_in(word, 0, filled);
  return filled;
}

void KnownValues::fill_in(std::string_view word, int depth, std::vector<std::string>& into) {
  const std::string_view name = expanded_name(word);
  const auto found = name.empty() ? values_.end() : values_.find(name);
  if (found == values_.end() || depth == most_filled_depth || n_left_ == 0 || whole_number(found->second))
    return into.emplace_back(word), void();
  for (const std::string_view part : split_words(found->second)) {
    n_left_ -= std::min<std::size_t>(n_left_, 1);
    fill_in(part, depth + 1, into);
  }
}

bool KnownValues::leaves_unknown(std::span<const std::string> words) const {
  return std::ranges::any_of(words, [this](const std::string& word) {
    if (!is_expansion(word)) return false;
    const auto found = values_.find(expanded_name(word));
    return found == values_.end() || !whole_number(found->second);
  });
}

}  // namespace lockstep::site

#include "site/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/ascii.hpp"
#include "core/characters.hpp"
#include "core/suggest.hpp"
#include "site/shell.hpp"

namespace lockstep::site {
namespace {

constexpr std::string_view white_space = " \t\r\n\v\f";

constexpr std::string_view character_table =
#include "site/character_table.txt"
    ;

}  // namespace

std::string_view trim(std::string_view text) noexcept {
  const std::size_t begin = text.find_first_not_of(white_space);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(white_space) + 1 - begin);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t end = text.find(separator); end != text.npos; end = text.find(separator)) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.push_back(text);
  return parts;
}

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  while (!(text = trim(text)).empty()) {
    const std::size_t end = std::min(text.find_first_of(white_space), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return words;
}

std::vector<std::vector<std::string_view>> rows_below(std::string_view table, std::string_view section) {
  std::vector<std::vector<std::string_view>> rows;
  bool is_below = false;
  for (const std::string_view line : split(table, '\n')) {
    if (line.starts_with('[')) is_below = line.substr(1, line.find(']') - 1) == section;
    if (!is_below || line.empty() || line.starts_with('[') || line.starts_with('#')) continue;
    rows.push_back(split(line, '|'));
    for (std::string_view& cell : rows.back()) cell = trim(cell);
  }
  return rows;
}

bool is_one_of(std::string_view word, std::string_view words) {
  const auto is_blank_at = [words](std::size_t at) {
    return at >= words.size() || white_space.find(words[at]) != white_space.npos;
  };
  for (std::size_t at = words.find(word); at != words.npos && !word.empty(); at = words.find(word, at + 1))
    if ((at == 0 || is_blank_at(at - 1)) && is_blank_at(at + word.size())) return true;
  return false;
}

bool starts_with_any(std::string_view text, std::span<const std::string_view> beginnings) {
  return std::ranges::any_of(beginnings, [text](std::string_view beginning) { return text.starts_with(beginning); });
}

bool contains_ignoring_case(std::string_view text, std::string_view part) {
  const auto same = [](char a, char b) { return core::to_lower(a) == core::to_lower(b); };
  return std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end() || part.empty();
}

std::optional<long> whole_number(std::string_view text) noexcept {
  long number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string_view file_name(std::string_view path) noexcept {
  return path.substr(path.find_last_of('/') + 1);  // npos + 1 is 0
}

std::string_view assigned_name(std::string_view word) noexcept {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  const auto n = static_cast<std::size_t>(std::ranges::find_if_not(word, is_letter) - word.begin());
  return n == 0 || (word[0] >= '0' && word[0] <= '9') ? std::string_view{} : word.substr(0, n);
}

std::string counted(long n, std::string_view thing) { return fmt::format("{} {}{}", n, thing, n == 1 ? "" : "s"); }

std::optional<std::string> near_name(std::string_view word, std::span<const std::string> candidates) {
  constexpr std::size_t longest = 64;
  return word.size() <= longest ? core::near_miss(word, candidates) : std::nullopt;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates, std::string_view dashes) {
  const auto near = near_name(word, candidates);
  return near ? fmt::format("did you mean {}{}?", dashes, *near) : "";
}

const Lookalike* find_lookalike(char32_t code) {
  static const auto lookalikes = [] {
    const auto code_of = [](std::string_view text) {
      return static_cast<char32_t>(std::stoul(std::string{text}, nullptr, 16));
    };
    std::vector<Lookalike> all;
    for (const auto& row : rows_below(character_table, "lookalikes"))
      all.push_back({code_of(row[0]), code_of(row[1]), row[2], row[3]});
    return all;
  }();
  const auto found =
      std::ranges::find_if(lookalikes, [code](const Lookalike& one) { return code >= one.first && code <= one.last; });
  return found == lookalikes.end() ? nullptr : &*found;
}

std::string shown(std::string_view text) {
  std::string all;
  while (!text.empty()) {
    const auto first = core::first_character(text);
    const std::size_t n_bytes = first ? first->n_bytes : 1;
    const bool is_lookalike = first && n_bytes > 1 && find_lookalike(first->code) != nullptr;
    all += is_lookalike ? fmt::format("<{}>", core::name_of(first->code)) : std::string{text.substr(0, n_bytes)};
    text.remove_prefix(n_bytes);
  }
  std::ranges::replace(all, literal_dollar, '$');
  return all;
}

}  // namespace lockstep::site

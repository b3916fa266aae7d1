#include "site/text.hpp"

#include <algorithm>
#include <charconv>

#include "core/ascii.hpp"
#include "core/suggest.hpp"

namespace lockstep::site {
namespace {

constexpr std::string_view white_space = " \t\r\n\v\f";

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

std::optional<std::string> near_name(std::string_view word, std::span<const std::string> candidates) {
  constexpr std::size_t longest = 64;
  return word.size() <= longest ? core::near_miss(word, candidates) : std::nullopt;
}

}  // namespace lockstep::site

#include "training/shard/misplaced.hpp"

#include <algorithm>

namespace lockstep::training::shard {
namespace {

bool has_word(std::string_view words, std::string_view word) {
  for (std::size_t begin = 0; begin < words.size();) {
    const std::size_t end = std::min(words.find(' ', begin), words.size());
    if (words.substr(begin, end - begin) == word) return true;
    begin = end + 1;
  }
  return false;
}

std::string with_commas(std::string_view words) {
  std::string text;
  for (const char c : words) text += c == ' ' ? std::string{", "} : std::string{c};
  return text;
}

}  // namespace

bool is_for(const FlagUse& use, std::string_view kind) { return has_word(use.kinds, kind); }

void refuse_misplaced(const core::Flags& flags, std::span<const FlagUse> uses, const std::string& kind) {
  for (const FlagUse& use : uses) {
    if (!flags.has(std::string{use.flag}) || is_for(use, kind)) continue;
    core::fail_usage({.what = fmt::format("{} does not take this flag", kind),
                      .where = std::string{use.flag},
                      .expected = "it is for: " + with_commas(use.kinds),
                      .fix = "leave it out"});
  }
}

}  // namespace lockstep::training::shard

#include "core/suggest.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "core/ascii.hpp"

namespace lockstep::core {
namespace {

bool starts_with(std::string_view text, std::string_view beginning) {
  return equal_ignoring_case(text.substr(0, beginning.size()), beginning);
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last, last, row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last = std::exchange(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = to_lower(a[i - 1]) == to_lower(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      const bool swapped =
          i > 1 && j > 1 && to_lower(a[i - 1]) == to_lower(b[j - 2]) && to_lower(a[i - 2]) == to_lower(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row.back();
}

std::optional<std::string> near_miss(std::string_view word, std::span<const std::string> candidates) {
  if (word.empty()) return std::nullopt;
  // A slip leaves at least one letter of the word unchanged.
  std::size_t least = std::min(std::max<std::size_t>(1, word.size() / 3), word.size() - 1) + 1;
  const std::string* nearest = nullptr;
  std::vector<std::string_view> completed;
  for (const std::string& candidate : candidates) {
    if (const std::size_t distance = edit_distance(word, candidate); distance < least) {
      least = distance;
      nearest = &candidate;
    }
    if (starts_with(candidate, word)) completed.push_back(candidate);
  }
  const bool is_one_letter_off = nearest != nullptr && least <= 1;
  if (!completed.empty() && !is_one_letter_off) {
    const std::string_view shortest = *std::ranges::min_element(completed, {}, &std::string_view::size);
    if (std::ranges::all_of(completed, [&](std::string_view longer) { return starts_with(longer, shortest); }))
      return std::string{shortest};
  }
  if (nearest != nullptr) return *nearest;
  return std::nullopt;
}

std::string join(std::span<const std::string> words, std::string_view separator) {
  return fmt::format("{}", fmt::join(words, separator));
}

}  // namespace lockstep::core

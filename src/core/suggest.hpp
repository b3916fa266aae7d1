// Near misses: what the user probably meant.
// Invariant: pure; the result is one of the candidates or nothing.
// Used by every parser of names.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::core {

/// Returns the candidate nearest to `word` by edit distance with transpositions (Damerau 1964), if near enough to be a
/// slip; or the shortest of those that begin with `word`, if all the others begin with that one.
[[nodiscard]] std::optional<std::string> near_miss(std::string_view word, std::span<const std::string> candidates);

/// Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`, in any case; no letter is
/// edited twice.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// "a, b, c" for messages.
[[nodiscard]] std::string join(std::span<const std::string> words, std::string_view separator = ", ");

}  // namespace lockstep::core

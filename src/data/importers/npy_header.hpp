// The header of an .npy file: versions 1 to 3 of NEP 1 (https://numpy.org/neps/nep-0001-npy-format.html).
// Invariant: only what can be stored as it is comes through: rows in C order, little-endian, one of Lockstep's types.
// Used by the npy importer, and by checkpoint/ for weights.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/dtype.hpp"
#include "data/importers/input.hpp"

namespace lockstep::data {

struct NpyHeader {
  core::DType dtype = core::DType::float32;  ///< uint8 where elements are words
  std::uint64_t word_bytes = 0;              ///< more than 0: elements are words of so many bytes, padded with zeros
  bool is_wide = false;                      ///< each character of a word is a code point of four bytes
  std::vector<std::uint64_t> shape{};
  std::uint64_t bytes = 0;  ///< where the data begins
};

inline constexpr std::string_view npy_magic = "\x93NUMPY";
inline constexpr std::uint64_t longest_npy_text = 1 << 16;  ///< NumPy itself refuses above 10,000
inline constexpr std::uint64_t longest_npy_header = 12 + longest_npy_text;

/// core::Error (usage) with the fix in NumPy's words: not an .npy file, damaged, column order, big-endian, pickled
/// objects, other types. bool is read as uint8. Words are let through if `may_be_words`.
[[nodiscard]] NpyHeader read_npy_header(const Input& input, bool may_be_words = false);

}  // namespace lockstep::data

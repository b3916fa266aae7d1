// Labels that are words, such as "cat": each different word is a class.
// Invariant: a word keeps the number it was first given, in whatever form of Unicode, so labels can be read again; each
// word is UTF-8.
// Used by the importers of csv, npy and HDF5.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/importers/arrays.hpp"

namespace lockstep::data {

class WordList {
 public:
  /// In the order of arrival, from 0 on. core::Error (usage) naming `where` if the word is empty, not UTF-8 or has
  /// control characters, or there are more than 65,536.
  std::uint16_t number(std::string_view word, const std::function<std::string()>& where);
  /// By number.
  [[nodiscard]] std::vector<std::string> list() const;
  /// Words that are the same in another form of Unicode.
  [[nodiscard]] std::vector<Remark> remarks() const;

 private:
  std::map<std::string, std::uint16_t, std::less<>> numbers_{};  ///< in every form there is
  std::vector<std::string> words_{};                             ///< composed, by number
};

/// The labels of a split as numbers of words.
class WordArray final : public RowArray {
 public:
  /// Labels [first, first + n).
  using Read = std::function<std::vector<std::string>(std::uint64_t first, std::uint64_t n)>;

  /// Reads all of them. core::Error (usage) unless `dimensions` are those of one word per sample.
  WordArray(const std::string& place, const std::vector<std::uint64_t>& dimensions, Read read,
            std::shared_ptr<WordList> words);
  [[nodiscard]] bool stands_for_words() const noexcept override { return true; }
  void read_rows(std::uint64_t first, std::uint64_t n, std::span<std::byte> data) const override;

 private:
  Read read_;
  std::shared_ptr<WordList> words_;
};

/// The source of pairs of which some y may stand for `words`. core::Error (usage) if others are not, or
/// `options` want numbers.
[[nodiscard]] std::unique_ptr<Source> make_word_source(std::vector<ArrayPair> pairs, const WordList& words,
                                                       ArrayOptions options);

}  // namespace lockstep::data

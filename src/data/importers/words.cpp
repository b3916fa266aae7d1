#include "data/importers/words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/characters.hpp"
#include "core/error.hpp"
#include "data/format/names.hpp"

namespace lockstep::data {
namespace {

constexpr std::size_t most_words = std::size_t{1} << 16;
constexpr std::size_t most_forms = most_words * 4;
constexpr std::uint64_t words_together = 4096;

/// RFC 3629: the shortest form, no surrogates, up to U+10FFFF.
bool is_utf8(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  for (std::size_t i = 0; i < text.size();) {
    const unsigned lead = byte(i);
    const std::size_t n = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (n > 1 && (lead < 0xc2 || lead > 0xf4)) return false;
    unsigned code = n == 1 ? lead : lead & (0x7fU >> n);
    for (std::size_t k = 1; k < n; ++k) {
      if ((byte(i + k) & 0xc0U) != 0x80U) return false;
      code = code << 6 | (byte(i + k) & 0x3fU);
    }
    if ((n == 3 && (code < 0x800 || (code >= 0xd800 && code < 0xe000))) ||
        (n == 4 && (code < 0x10000 || code > 0x10ffff)))
      return false;
    i += n;
  }
  return true;
}

}  // namespace

std::uint16_t WordList::number(std::string_view word, const std::function<std::string()>& where) {
  if (const auto found = numbers_.find(word); found != numbers_.end()) return found->second;
  const auto fail = [&](const char* what, const char* fix) {
    core::fail_usage({.what = what,
                      .where = where(),
                      .expected = fmt::format("the name of a class, in UTF-8, one of at most {}", most_words),
                      .fix = fix});
  };
  if (word.find_first_not_of(' ') == std::string_view::npos)
    fail("an empty label", "give it a name, or leave the sample out");
  if (!is_utf8(word)) fail("a label that is not UTF-8", "write the file in UTF-8");
  if (core::has_controls(word)) fail("a label with a control character", "correct it");
  std::string plain = composed(word);
  const auto same = numbers_.find(plain);
  if (same == numbers_.end() && words_.size() == most_words)
    fail("too many different labels", "check that these are classes, or write numbers");
  if (numbers_.size() == most_forms) fail("too many spellings of labels", "write each label in one way");
  const std::uint16_t number = same != numbers_.end() ? same->second : static_cast<std::uint16_t>(words_.size());
  if (number == words_.size()) words_.push_back(plain);
  numbers_.emplace(std::move(plain), number);
  numbers_.emplace(word, number);
  return number;
}

std::vector<std::string> WordList::list() const { return words_; }

std::vector<Remark> WordList::remarks() const {
  const std::size_t n = numbers_.size() - words_.size();
  if (n == 0) return {};
  const auto other =
      std::ranges::find_if(numbers_, [&](const auto& form) { return form.first != words_[form.second]; });
  return {
      changed(fmt::format("{} label{} in another form of Unicode {} converted to the composed form (NFC), such as '{}'",
                          n, n == 1 ? "" : "s", n == 1 ? "is" : "are", words_[other->second]))};
}

WordArray::WordArray(const std::string& place, const std::vector<std::uint64_t>& dimensions, Read read,
                     std::shared_ptr<WordList> words)
    : RowArray{place, core::DType::uint16, dimensions}, read_{std::move(read)}, words_{std::move(words)} {
  if (row().n_elements() != 1)
    core::fail_usage({.what = fmt::format("{} words for a sample", row().n_elements()),
                      .where = place,
                      .expected = "one, the name of its class",
                      .fix = "write the labels as an array of one dimension"});
  std::vector<std::byte> numbers;
  for (std::uint64_t first = 0; first < n_rows(); first += words_together) {
    const std::uint64_t n = std::min(words_together, n_rows() - first);
    numbers.resize(n * row_bytes());
    read_rows(first, n, numbers);
  }
}

void WordArray::read_rows(std::uint64_t first, std::uint64_t n, std::span<std::byte> data) const {
  for (std::uint64_t done = 0; done < n;) {
    const std::vector<std::string> words = read_(first + done, std::min(words_together, n - done));
    for (const std::string& word : words) {
      const std::uint16_t number =
          words_->number(word, [&] { return fmt::format("{}, row {}", place(), first + done); });
      std::memcpy(&data[done++ * sizeof number], &number, sizeof number);
    }
  }
}

std::unique_ptr<Source> make_word_source(std::vector<ArrayPair> pairs, const WordList& words, ArrayOptions options) {
  options.words = words.list();
  for (Remark& remark : words.remarks()) options.remarks.push_back(std::move(remark));
  const auto is_words = [](const ArrayPair& pair) { return pair.y->stands_for_words(); };
  const auto first = std::find_if(pairs.begin(), pairs.end(), is_words);
  if (first == pairs.end()) return make_array_source(std::move(pairs), std::move(options));
  if (options.no_classes)
    core::fail_usage({.what = "labels that are words",
                      .where = first->y->place(),
                      .expected = "numbers, as --no-classes says",
                      .fix = "leave out --no-classes"});
  if (const auto other = std::find_if_not(pairs.begin(), pairs.end(), is_words); other != pairs.end())
    core::fail_usage({.what = "labels that are numbers",
                      .where = other->y->place(),
                      .expected = "words, as in " + first->y->place(),
                      .fix = "write the labels of both in the same way"});
  return make_array_source(std::move(pairs), std::move(options));
}

}  // namespace lockstep::data

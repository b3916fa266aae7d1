#include "data/importers/npy_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "data/format/known_formats.hpp"

namespace lockstep::data {
namespace {

constexpr std::uint64_t preamble_bytes = 8;  // npy_magic and version
constexpr std::array<std::pair<std::string_view, core::DType>, 12> types{{{"b1", core::DType::uint8},
                                                                          {"i1", core::DType::int8},
                                                                          {"u1", core::DType::uint8},
                                                                          {"i2", core::DType::int16},
                                                                          {"u2", core::DType::uint16},
                                                                          {"i4", core::DType::int32},
                                                                          {"u4", core::DType::uint32},
                                                                          {"i8", core::DType::int64},
                                                                          {"u8", core::DType::uint64},
                                                                          {"f2", core::DType::float16},
                                                                          {"f4", core::DType::float32},
                                                                          {"f8", core::DType::float64}}};

[[noreturn]] void fail(const Input& input, std::uint64_t offset, const std::string& what, const char* expected,
                       const char* fix = "write it again with numpy.save") {
  core::fail_usage(
      {.what = what, .where = fmt::format("{}, byte {}", input.name(), offset), .expected = expected, .fix = fix});
}

std::string read_text(const Input& input, std::uint64_t offset, std::uint64_t n) {
  std::string text(n, '\0');
  input.read_at(offset, std::as_writable_bytes(std::span{text}));
  return text;
}

[[noreturn]] void refuse_unlike_npy(const Input& input, std::string_view begin) {
  if (begin.empty()) fail(input, 0, "an empty file", "an .npy file", "copy or write it again with numpy.save");
  if (begin.starts_with("PK\x03\x04"))
    fail(input, 0, "this is a zip archive, as numpy.savez writes", "an .npy file",
         "rename the file, so that it ends in .npz");
  if (begin.substr(0, npy_magic.size()) == npy_magic.substr(0, begin.size()))
    fail(input, begin.size(), "a truncated .npy file: its header is missing", "an .npy file",
         "copy or write it again with numpy.save");
  std::vector<std::byte> head(std::min<std::uint64_t>(input.size(), known_format_bytes));
  input.read_at(0, head);
  refuse_other_format(head, input.name(), "an .npy file");
  fail(input, 0, "not an .npy file", "\\x93NUMPY");
}

/// The Python literal of the header: a dictionary of strings, True or False, and tuples of numbers.
class HeaderParser {
 public:
  HeaderParser(const Input& input, std::string_view text, std::uint64_t offset, bool may_be_words)
      : input_{input}, text_{text}, offset_{offset}, may_be_words_{may_be_words} {}

  void parse(NpyHeader& header) {
    bool has_type = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = parse_string();
      expect(':');
      if (key == "descr" && !std::exchange(has_type, true))
        parse_type(header);
      else if (key == "fortran_order" && !std::exchange(has_order, true))
        parse_order();
      else if (key == "shape" && !std::exchange(has_shape, true))
        header.shape = parse_shape();
      else
        fail_here("the keys descr, fortran_order and shape, once each");
      if (!accept(',') && peek() != '}') fail_here("',' or '}'");
    }
    if (!has_type || !has_order || !has_shape) fail_here("the keys descr, fortran_order and shape");
    if (peek() != '\0') fail_here("nothing after the dictionary");
  }

 private:
  void parse_type(NpyHeader& header) {
    if (peek() == '[')
      fail(input_, place(), "a structured type", "an array of numbers", "save its fields as separate arrays");
    const std::string_view word = parse_string();
    if (word.find('O') != std::string_view::npos)
      fail(input_, place(), "pickled Python objects", "an array of numbers",
           "save a.astype(numpy.float32), or such, instead");
    if (word.size() > 1 && word.front() == '>')
      fail(input_, place(), fmt::format("big-endian type '{}'", word), "a little-endian type",
           "save a.astype(a.dtype.newbyteorder('<'))");
    const std::string_view kind = word.substr(word.empty() ? 0 : 1);
    if (may_be_words_ && (kind.starts_with('U') || kind.starts_with('S'))) return parse_word(kind, header);
    const auto type = std::find_if(types.begin(), types.end(), [&](const auto& entry) { return entry.first == kind; });
    if (type == types.end() || (word.front() != '<' && (word.front() != '|' || kind.back() != '1')))
      fail(input_, place(), fmt::format("type '{}'", word),
           "integers of 8 to 64 bits, float16, float32, float64 or bool", "save a.astype(numpy.float32), or such");
    header.dtype = type->second;
  }

  /// "U12": twelve code points; "S12": twelve bytes.
  void parse_word(std::string_view kind, NpyHeader& header) {
    constexpr std::uint64_t longest = 4096;
    std::uint64_t n = 0;
    const auto [end, error] = std::from_chars(kind.data() + 1, kind.data() + kind.size(), n);
    if (error != std::errc{} || end != kind.data() + kind.size() || n == 0 || n > longest)
      fail(input_, place(), fmt::format("words of type '{}'", kind),
           fmt::format("U1 to U{0} or S1 to S{0}", longest).c_str());
    header.is_wide = kind.front() == 'U';
    header.word_bytes = header.is_wide ? 4 * n : n;
    header.dtype = core::DType::uint8;
  }

  void parse_order() {
    if (accept_word("False")) return;
    if (!accept_word("True")) fail_here("True or False");
    fail(input_, place(), "the array is stored column by column (fortran_order)", "one sample after another (C order)",
         "save numpy.ascontiguousarray(a)");
  }

  std::vector<std::uint64_t> parse_shape() {
    std::vector<std::uint64_t> shape;
    expect('(');
    while (!accept(')')) {
      shape.push_back(parse_number());
      if (!accept(',') && peek() != ')') fail_here("',' or ')'");
    }
    return shape;
  }

  std::uint64_t parse_number() {
    peek();
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc{}) fail_here("a number below 2^64");
    at_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }

  std::string_view parse_string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail_here("a string");
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail_here("a string that ends");
    const std::string_view word = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return word;
  }

  /// The next character that is not white space, which stays; '\0' at the end.
  char peek() {
    at_ = std::min(text_.find_first_not_of(" \t\n\r", at_), text_.size());
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (at_ >= text_.size() || peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail_here(fmt::format("'{}'", c).c_str());
  }
  bool accept_word(std::string_view word) {
    peek();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  [[nodiscard]] std::uint64_t place() const { return offset_ + at_; }
  [[noreturn]] void fail_here(const char* expected) const { fail(input_, place(), "damaged header", expected); }

  const Input& input_;
  std::string_view text_;
  std::uint64_t offset_;  ///< of the text in the file
  bool may_be_words_;
  std::size_t at_ = 0;
};

}  // namespace

NpyHeader read_npy_header(const Input& input, bool may_be_words) {
  const std::string begin = read_text(input, 0, std::min<std::uint64_t>(input.size(), preamble_bytes));
  if (begin.size() < preamble_bytes || !begin.starts_with(npy_magic)) refuse_unlike_npy(input, begin);
  const auto version = static_cast<unsigned char>(read_text(input, npy_magic.size(), 1).front());
  if (version < 1 || version > 3)
    fail(input, npy_magic.size(), fmt::format("format version {}", version), "version 1, 2 or 3");
  const std::uint64_t length_bytes = version == 1 ? 2 : 4;
  std::uint64_t length = 0;
  const std::string length_text = read_text(input, preamble_bytes, length_bytes);
  for (std::uint64_t i = 0; i < length_bytes; ++i)
    length |= std::uint64_t{static_cast<unsigned char>(length_text[i])} << (8 * i);
  if (length > longest_npy_text)
    fail(input, preamble_bytes, fmt::format("a header of {} bytes", length), "64 KiB at most");
  NpyHeader header;
  header.bytes = preamble_bytes + length_bytes + length;
  const std::string text = read_text(input, preamble_bytes + length_bytes, length);
  HeaderParser{input, text, preamble_bytes + length_bytes, may_be_words}.parse(header);
  return header;
}

}  // namespace lockstep::data

// Lines, fields and numbers of text files with separated columns.
// Invariant: memory is bounded by the longest line; numbers do not depend on the locale.
// Used by the importers of CSV and MovieLens.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/importers/input.hpp"

namespace lockstep::data {

/// Without the blanks around it.
[[nodiscard]] std::string_view trim(std::string_view text);

/// The lines of a file, plain or gzip, that have more than spaces: those of tabs alone are empty fields. They end in LF
/// or CRLF; the last one may have no end.
class LineReader {
 public:
  /// A byte order mark of UTF-8 is skipped. core::Error (usage) for UTF-16.
  explicit LineReader(const std::string& path);

  /// The next line without its end, valid until the next call; nothing at the end of the file. core::Error (usage) for
  /// lines above 64 MiB, and those that end in CR alone.
  [[nodiscard]] std::optional<std::string_view> next();
  /// The number of the last line that next() returned, counted from 1 as in an editor.
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
  /// "FILE, line N"
  [[nodiscard]] std::string place() const;

 private:
  [[nodiscard]] std::optional<std::string_view> next_raw();
  bool refill();
  void check_encoding() const;
  void check_line_ends(std::string_view first) const;

  std::string path_;
  std::unique_ptr<ByteStream> stream_;
  std::string buffer_{};
  std::size_t at_ = 0;
  bool is_at_end_ = false;
  std::uint64_t number_ = 0;
};

/// Fields of a line. Their text lies in the line, or in `undoubled`.
struct Fields {
  std::vector<std::string_view> all{};
  std::string undoubled{};

  [[nodiscard]] std::size_t size() const noexcept { return all.size(); }
  [[nodiscard]] std::string_view operator[](std::size_t i) const noexcept { return all[i]; }
};

/// Cuts a line at every `separator` outside of double quotes; quotes and blanks around a field are taken off, and of
/// two quotes in a quoted field one; blanks within quotes stay (RFC 4180). Returns false if a quote has no end or
/// something follows it.
[[nodiscard]] bool split_fields(std::string_view line, std::string_view separator, Fields& fields);

/// Decimal, with an exponent, "nan" or "inf", with or without blanks around it; rounded once. Nothing if it is anything
/// else or too large.
[[nodiscard]] std::optional<float> parse_float(std::string_view text);
[[nodiscard]] std::optional<std::int64_t> parse_integer(std::string_view text);

/// Whether `text` is a whole number that float32 does not hold: `value`, which parse_float made of it, is another.
[[nodiscard]] bool is_rounded_whole(std::string_view text, float value);

/// A field as a message shows it: in quotes, short, printable.
[[nodiscard]] std::string in_quotes(std::string_view field);

}  // namespace lockstep::data

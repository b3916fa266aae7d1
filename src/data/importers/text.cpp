#include "data/importers/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/error.hpp"
#include "core/printable.hpp"

namespace lockstep::data {
namespace {

constexpr std::size_t text_read_together = std::size_t{1} << 17;
constexpr std::size_t longest_line = std::size_t{64} << 20;
constexpr std::string_view blanks = " \t\r";
constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

/// The whole of `text` as a T, or why not. A plus sign is fine, as programs write it, and so are blanks around it.
template <class T>
std::errc parse_whole(std::string_view text, T& value) {
  text = trim(text);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end != text.data() + text.size()) return std::errc::invalid_argument;
  return error;
}

/// `field` with one quote for two, appended to `text` if it has any.
std::string_view undouble(std::string_view field, std::string& text) {
  if (field.find('"') == std::string_view::npos) return field;
  const std::size_t begin = text.size();
  for (std::size_t i = 0; i < field.size(); i += field[i] == '"' ? 2 : 1) text += field[i];
  return std::string_view{text}.substr(begin);
}

}  // namespace

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

LineReader::LineReader(const std::string& path) : path_{path}, stream_{open_stream(path)} {
  refill();
  check_encoding();
  if (std::string_view{buffer_}.substr(0, byte_order_mark.size()) == byte_order_mark) at_ = byte_order_mark.size();
}

/// UTF-16 begins with its byte order mark, or has a zero in its first character.
void LineReader::check_encoding() const {
  constexpr std::size_t looked_at = 512;
  const std::string_view head = std::string_view{buffer_}.substr(0, looked_at);
  const auto is_control = [](char c) {
    return static_cast<unsigned char>(c) < ' ' && c != '\t' && c != '\r' && c != '\n';
  };
  if (std::ranges::any_of(head, is_control) || head.starts_with('<') || head.starts_with("version https://git-lfs"))
    refuse_other_format(std::as_bytes(std::span{head}), path_, "text with columns");
  const std::string_view begin = std::string_view{buffer_}.substr(0, 2);
  if (begin != "\xff\xfe" && begin != "\xfe\xff" && begin.find('\0') == std::string_view::npos) return;
  core::fail_usage({.what = "text in UTF-16, or not text",
                    .where = path_ + ", byte 0",
                    .expected = "text in UTF-8 or ASCII",
                    .fix = "write it again: iconv -f UTF-16 -t UTF-8 FILE"});
}

std::optional<std::string_view> LineReader::next() {
  for (;;) {
    const auto line = next_raw();
    if (!line) return std::nullopt;
    if (++number_ == 1) check_line_ends(*line);
    if (line->find_first_not_of(" \r") != std::string_view::npos)
      return line->back() == '\r' ? line->substr(0, line->size() - 1) : *line;
  }
}

/// Refuses lines that end in CR alone, as old Macs and some spreadsheets write them.
void LineReader::check_line_ends(std::string_view first) const {
  const std::size_t at = first.find('\r');
  if (at == std::string_view::npos || at + 1 >= first.size() || first[at + 1] == '\r') return;
  core::fail_usage({.what = "lines end in a carriage return (CR) alone",
                    .where = place(),
                    .expected = "lines that end in LF or CRLF",
                    .fix = "write it again: tr '\\r' '\\n' < FILE"});
}

std::string LineReader::place() const { return fmt::format("{}, line {}", path_, number_); }

std::optional<std::string_view> LineReader::next_raw() {
  std::size_t searched = 0;
  for (;;) {
    const std::size_t end = buffer_.find('\n', at_ + searched);
    if (end != std::string::npos) {
      const std::size_t begin = std::exchange(at_, end + 1);
      return std::string_view{buffer_}.substr(begin, end - begin);
    }
    searched = buffer_.size() - at_;
    if (refill()) continue;
    if (at_ == buffer_.size()) return std::nullopt;
    return std::string_view{buffer_}.substr(std::exchange(at_, buffer_.size()));
  }
}

/// Drops what was given out and reads on; false at the end of the file.
bool LineReader::refill() {
  if (is_at_end_) return false;
  buffer_.erase(0, std::exchange(at_, 0));
  const std::size_t kept = buffer_.size();
  if (kept > longest_line) {
    ++number_;
    core::fail_usage({.what = fmt::format("a line of more than {} MiB", longest_line >> 20),
                      .where = place(),
                      .expected = "lines of text",
                      .fix = "check that it is a text file"});
  }
  buffer_.resize(kept + text_read_together);
  const std::size_t n = stream_->read(std::as_writable_bytes(std::span{buffer_}.subspan(kept)));
  buffer_.resize(kept + n);
  is_at_end_ = n == 0;
  return n > 0;
}

bool split_fields(std::string_view line, std::string_view separator, Fields& fields) {
  fields.all.clear();
  fields.undoubled.clear();
  fields.undoubled.reserve(line.size());  // so that it stays where it is
  for (;;) {
    std::size_t end = line.find(separator);
    std::string_view field = trim(line.substr(0, end));
    if (!field.empty() && field.front() == '"') {
      const std::size_t open = line.find('"');
      std::size_t close = line.find('"', open + 1);
      while (close != std::string_view::npos && line.substr(close + 1, 1) == "\"") close = line.find('"', close + 2);
      if (close == std::string_view::npos) return false;
      end = line.find(separator, close);
      if (!trim(line.substr(close + 1, end == std::string_view::npos ? end : end - close - 1)).empty()) return false;
      field = undouble(line.substr(open + 1, close - open - 1), fields.undoubled);
    }
    fields.all.push_back(field);
    if (end == std::string_view::npos) return true;
    line.remove_prefix(end + separator.size());
  }
}

std::optional<float> parse_float(std::string_view text) {
  float value = 0;
  const std::errc error = parse_whole(text, value);
  if (error == std::errc{}) return value;
  // Numbers nearer to zero than any float are zero or the least one; from_chars calls them out of range, too.
  double wide = 0;
  if (error == std::errc::result_out_of_range && parse_whole(text, wide) == std::errc{} && std::abs(wide) < 1)
    return static_cast<float>(wide);
  return std::nullopt;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  if (parse_whole(text, value) != std::errc{}) return std::nullopt;
  return value;
}

bool is_rounded_whole(std::string_view text, float value) {
  constexpr float all_held_below = 1 << 24;
  if (!(std::abs(value) >= all_held_below) || std::isinf(value)) return false;
  text = trim(text);
  const std::string_view digits = text.substr(std::min(text.find_first_not_of("+-0"), text.size()));
  if (digits.find_first_not_of("0123456789") == std::string_view::npos)
    return fmt::format("{:.0f}", std::abs(value)) != digits;
  double wide = 0;
  static_cast<void>(parse_whole(text, wide));
  return wide == std::trunc(wide) && wide != static_cast<double>(value);
}

std::string in_quotes(std::string_view field) {
  constexpr std::size_t most = 40;
  const auto continues_character = [&](std::size_t at) {
    return (static_cast<unsigned char>(field[at]) & 0xC0) == 0x80;
  };
  std::size_t n = std::min(field.size(), most);
  for (int i = 0; i < 3 && n > 0 && n < field.size() && continues_character(n); ++i) --n;
  return fmt::format("'{}{}'", core::printable(field.substr(0, n)), n < field.size() ? "..." : "");
}

}  // namespace lockstep::data

#include "core/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "core/ascii.hpp"
#include "core/error.hpp"

namespace lockstep::core {
namespace {

constexpr std::string_view binary_prefixes = "KMGTPE";
constexpr std::string_view digits = "0123456789";

// Takes the longest run of decimal digits from the front of `text`.
std::string_view take_digits(std::string_view& text) {
  const std::string_view run = text.substr(0, text.find_first_not_of(digits));
  text.remove_prefix(run.size());
  return run;
}

// The power of two of a unit. "KB" has none, because it may mean 1000 or 1024.
std::optional<int> binary_exponent(std::string_view unit) {
  if (unit.empty() || equal_ignoring_case(unit, "B")) return 0;
  for (std::size_t i = 0; i < binary_prefixes.size(); ++i) {
    const std::string_view prefix = binary_prefixes.substr(i, 1);
    if (equal_ignoring_case(unit, prefix) || equal_ignoring_case(unit, fmt::format("{}iB", prefix)))
      return 10 * static_cast<int>(i + 1);
  }
  return std::nullopt;
}

// A decimal number that is doubled digit by digit, so that "1.5M" is exact.
struct Decimal {
  std::uint64_t whole = 0;
  std::string fraction;  // digits after the point

  // Returns false if the whole part no longer fits.
  bool double_it() {
    int carry = 0;
    for (auto digit = fraction.rbegin(); digit != fraction.rend(); ++digit) {
      const int twice = 2 * (*digit - '0') + carry;
      *digit = static_cast<char>('0' + twice % 10);
      carry = twice / 10;
    }
    if (whole > std::numeric_limits<std::uint64_t>::max() / 2) return false;
    whole = 2 * whole + static_cast<std::uint64_t>(carry);
    return true;
  }
  [[nodiscard]] bool is_whole() const { return fraction.find_first_not_of('0') == std::string::npos; }
};

// Takes digits, perhaps followed by a point and more digits, from the front of `text`.
std::optional<Decimal> take_decimal(std::string_view& text) {
  Decimal number;
  const std::string_view whole = take_digits(text);
  if (std::from_chars(whole.data(), whole.data() + whole.size(), number.whole).ec != std::errc{}) return std::nullopt;
  if (!text.starts_with('.')) return number;
  text.remove_prefix(1);
  number.fraction = take_digits(text);
  if (number.fraction.empty()) return std::nullopt;
  return number;
}

// Returns nothing if `text` is not a whole number of bytes below 2^64.
std::optional<Bytes> bytes_in(std::string_view text) {
  std::optional<Decimal> number = take_decimal(text);
  if (!number) return std::nullopt;
  if (text.size() > 1 && text.front() == ' ') text.remove_prefix(1);  // "64 KiB", as it is printed
  const std::optional<int> exponent = binary_exponent(text);
  if (!exponent) return std::nullopt;
  for (int i = 0; i < *exponent; ++i) {
    if (!number->double_it()) return std::nullopt;
  }
  if (!number->is_whole()) return std::nullopt;
  return Bytes{number->whole};
}

// Returns bytes / 2^exponent with all decimals.
std::string exact_quotient(std::uint64_t bytes, int exponent) {
  const std::uint64_t mask = (std::uint64_t{1} << exponent) - 1;
  std::string text = std::to_string(bytes >> exponent);
  std::uint64_t rest = bytes & mask;
  if (rest != 0) text += '.';
  for (; rest != 0; rest &= mask) {  // rest < 2^60, so ten times it fits
    rest *= 10;
    text += digits[static_cast<std::size_t>(rest >> exponent)];
  }
  return text;
}

// Returns the power of ten after rounding to this many digits: 999.6 us is 1.00 ms.
int exponent_of(double value, int n_digits) {
  const std::string rounded = fmt::format("{:.{}e}", value, n_digits - 1);
  return std::stoi(rounded.substr(rounded.find('e') + 1));
}

struct TimeUnit {
  std::string_view word;
  double seconds;
};

constexpr std::array time_units{TimeUnit{"", 1},      TimeUnit{"s", 1},    TimeUnit{"ms", 1e-3},
                                TimeUnit{"us", 1e-6}, TimeUnit{"min", 60}, TimeUnit{"h", 3600}};

}  // namespace

Bytes parse_bytes(std::string_view text, std::string_view flag) {
  if (const auto bytes = bytes_in(text)) return *bytes;
  fail_usage({.what = fmt::format("'{}' is not a size", text),
              .where = std::string{flag},
              .expected = "a whole number of bytes below 2^64, such as 8, 64K, 64KiB, 1.5M or 1G (powers of 1024)"});
}

Seconds parse_seconds(std::string_view text, std::string_view flag) {
  double number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  const auto* known =
      std::find_if(time_units.begin(), time_units.end(), [&](const TimeUnit& u) { return u.word == unit; });
  // The first character rules out "-1", "inf" and "nan".
  const bool starts_well = !text.empty() && digits.find(text.front()) != std::string_view::npos;
  if (starts_well && status == std::errc{} && known != time_units.end() && std::isfinite(number * known->seconds))
    return {number * known->seconds};
  fail_usage({.what = fmt::format("'{}' is not a time", text),
              .where = std::string{flag},
              .expected = "a number, 0 or more, with s, ms, us, min or h, such as 30, 500ms or 2min"});
}

std::string format_bytes(Bytes bytes) {
  std::string number = std::to_string(bytes.value);
  std::string unit = "B";
  for (std::size_t i = 0; i < binary_prefixes.size(); ++i) {
    const int exponent = 10 * static_cast<int>(i + 1);
    if (bytes.value >> exponent == 0) break;
    if (std::string larger = exact_quotient(bytes.value, exponent); larger.size() <= number.size()) {
      number = std::move(larger);
      unit = fmt::format("{}iB", binary_prefixes[i]);
    }
  }
  return fmt::format("{} {}", number, unit);
}

std::string format_number(double value, int n_digits) {
  if (value == 0 || !std::isfinite(value)) return fmt::format("{}", value);
  std::string text = fmt::format("{:.{}f}", value, std::max(0, n_digits - 1 - exponent_of(value, n_digits)));
  if (text.find('.') != std::string::npos) text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string format_decimal(Bytes bytes) {
  constexpr std::array units{"B", "kB", "MB", "GB", "TB"};
  auto value = static_cast<double>(bytes.value);
  std::size_t i = 0;
  for (; value >= 999.5 && i + 1 < units.size(); ++i) value *= 1e-3;
  return fmt::format("{} {}", format_number(value), units[i]);
}

std::string format_seconds(Seconds time) {
  if (time.value == 0 || !std::isfinite(time.value)) return fmt::format("{} s", time.value);
  const int exponent = exponent_of(time.value, 3);
  const int shift = exponent >= 0 ? 0 : exponent >= -3 ? 3 : 6;
  const std::string_view unit = shift == 0 ? "s" : shift == 3 ? "ms" : "us";
  const int decimals = std::max(0, 2 - exponent - shift);
  return fmt::format("{:.{}f} {}", time.value * std::pow(10.0, shift), decimals, unit);
}

}  // namespace lockstep::core

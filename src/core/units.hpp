// Bytes and seconds as separate types, with parsing and printing.
// Invariant: KiB, MiB, GiB are powers of 1024; GB/s is 10^9 bytes per second; nothing mixes the two.
// Used by everything that names a size, a time or a rate.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::core {

/// A number of bytes; never a number of elements.
struct Bytes {
  std::uint64_t value = 0;
  auto operator<=>(const Bytes&) const = default;
};

/// A duration in seconds.
struct Seconds {
  double value = 0;
  auto operator<=>(const Seconds&) const = default;
};

/// Parses "8", "64K", "64KiB", "1.5M", "1G": powers of 1024, in any case; the usage Error names `flag`.
[[nodiscard]] Bytes parse_bytes(std::string_view text, std::string_view flag);

/// Parses "30", "30s", "500ms", "20us", "2min", "1h"; a bare number is seconds. The usage Error names `flag`.
[[nodiscard]] Seconds parse_seconds(std::string_view text, std::string_view flag);

/// Shortest exact form with a binary unit: "8 B", "64 KiB", "1.5 MiB".
[[nodiscard]] std::string format_bytes(Bytes bytes);

/// Three significant digits with a fitting unit: "0.153 us", "12.4 ms", "1.02 s".
[[nodiscard]] std::string format_seconds(Seconds time);

/// A number for readers: this many significant digits, no trailing zeros and never an exponent: "8350", "0.125".
[[nodiscard]] std::string format_number(double value, int n_digits = 3);

/// Three significant digits with a fitting decimal unit: "36 B", "1.05 kB", "987 MB".
[[nodiscard]] std::string format_decimal(Bytes bytes);

/// Bytes per second in units of 10^9 bytes; 0 for a time of 0.
[[nodiscard]] constexpr double gigabytes_per_second(Bytes bytes, Seconds time) noexcept {
  return time.value > 0 ? static_cast<double>(bytes.value) / time.value * 1e-9 : 0.0;
}

}  // namespace lockstep::core

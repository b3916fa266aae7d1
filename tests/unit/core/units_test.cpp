#include "core/units.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include "core/rng.hpp"
#include "thrown.hpp"

namespace lockstep::core {
namespace {

constexpr std::uint64_t kib = 1024, mib = kib * kib, gib = kib * mib;
constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();

TEST(Units, ParsesBytes) {
  const std::map<std::string, std::uint64_t> sizes{
      {"0", 0},
      {"8", 8},
      {"8B", 8},
      {"64K", 64 * kib},
      {"64k", 64 * kib},
      {"64KiB", 64 * kib},
      {"64kib", 64 * kib},
      {"64 KiB", 64 * kib},
      {"1.5K", 1536},
      {"1.5M", 3 * mib / 2},
      {"1G", gib},
      {"2T", 2048 * gib},
      {"0.0009765625K", 1},
      {"1.0", 1},
      {"18446744073709551615", largest},
      {"15.999999999999999999132638262011596452794037759304046630859375E", largest},
  };
  for (const auto& [text, bytes] : sizes) EXPECT_EQ(parse_bytes(text, "-b").value, bytes) << text;
}

TEST(Units, RejectsWhatIsNoSize) {
  for (const char* text : {"",     " ",      "-1",
                           "+1",   "K",      ".5K",
                           "1.",   "1.K",    "0.5",
                           "0.5B", "0.3K",   "1.5.5K",
                           "8x",   "8KB",    "8Ki",
                           "8K ",  "8 ",     "8  K",
                           " 8",   "1e3",    "0x10",
                           "nan",  "inf",    "18446744073709551616",
                           "16E",  "16384P", "99999999999999999999"}) {
    const auto error = thrown_by([&] { static_cast<void>(parse_bytes(text, "--min-bytes")); });
    ASSERT_TRUE(error) << text;
    EXPECT_EQ(error->code(), ExitCode::usage);
    EXPECT_EQ(error->problem().what, fmt::format("'{}' is not a size", text));
    EXPECT_EQ(error->problem().where, "--min-bytes");
    EXPECT_NE(error->problem().expected.find("64KiB"), std::string::npos);
  }
}

TEST(Units, ParsesSeconds) {
  const std::map<std::string, double> times{{"0", 0},       {"30", 30},    {"30s", 30},  {"1.5", 1.5},   {"500ms", 0.5},
                                            {"20us", 2e-5}, {"2min", 120}, {"1h", 3600}, {"0.5h", 1800}, {"1e3ms", 1}};
  for (const auto& [text, seconds] : times) EXPECT_DOUBLE_EQ(parse_seconds(text, "--timeout").value, seconds) << text;
}

TEST(Units, RejectsWhatIsNoTime) {
  for (const char* text : {"", "-1", "-0", "+1", "s", "ms", "30x", "30 s", " 30", "30m", "30S", "1.5.5", "nan", "inf",
                           "1e999", "1e306h"}) {
    const auto error = thrown_by([&] { static_cast<void>(parse_seconds(text, "--timeout")); });
    ASSERT_TRUE(error) << text;
    EXPECT_EQ(error->code(), ExitCode::usage);
    EXPECT_EQ(error->problem().where, "--timeout");
    EXPECT_NE(error->problem().expected.find("500ms"), std::string::npos);
  }
}

TEST(Units, FormatsBytesInTheirShortestExactForm) {
  const std::map<std::uint64_t, std::string> forms{{0, "0 B"},
                                                   {8, "8 B"},
                                                   {1000, "1000 B"},
                                                   {1023, "1023 B"},
                                                   {kib, "1 KiB"},
                                                   {kib + 1, "1025 B"},
                                                   {1280, "1.25 KiB"},
                                                   {1536, "1.5 KiB"},
                                                   {64 * kib, "64 KiB"},
                                                   {1025 * kib, "1025 KiB"},
                                                   {3 * mib / 2, "1.5 MiB"},
                                                   {gib, "1 GiB"},
                                                   {largest, "18446744073709551615 B"},
                                                   {std::uint64_t{1} << 63, "8 EiB"}};
  for (const auto& [bytes, form] : forms) EXPECT_EQ(format_bytes({bytes}), form);
}

TEST(Units, PrintedBytesParseBackExactly) {
  Random random{2};
  for (int i = 0; i < 10'000; ++i) {
    const Bytes bytes{random.next() >> random.below(64) << random.below(20)};
    ASSERT_EQ(parse_bytes(format_bytes(bytes), "-b"), bytes) << bytes.value;
  }
}

TEST(Units, FormatsSecondsWithThreeDigits) {
  const std::map<double, std::string> forms{{0, "0 s"},
                                            {1.53e-7, "0.153 us"},
                                            {1.5e-8, "0.0150 us"},
                                            {9.994e-6, "9.99 us"},
                                            {9.996e-6, "10.0 us"},
                                            {1.234e-4, "123 us"},
                                            {9.996e-4, "1.00 ms"},
                                            {0.0124, "12.4 ms"},
                                            {0.9996, "1.00 s"},
                                            {1.02, "1.02 s"},
                                            {61, "61.0 s"},
                                            {1234, "1234 s"},
                                            {-0.0124, "-12.4 ms"},
                                            {std::numeric_limits<double>::infinity(), "inf s"}};
  for (const auto& [seconds, form] : forms) EXPECT_EQ(format_seconds({seconds}), form);
}

TEST(Units, RatesAreDecimal) {
  EXPECT_DOUBLE_EQ(gigabytes_per_second({3'000'000'000}, {1.5}), 2.0);
  EXPECT_EQ(gigabytes_per_second({8}, {0}), 0.0);
}

TEST(Number, HasNoExponent) {
  EXPECT_EQ(format_number(8350), "8350");
  EXPECT_EQ(format_number(10'500), "10500");
  EXPECT_EQ(format_number(0.12345), "0.123");
  EXPECT_EQ(format_number(9.996), "10");
  EXPECT_EQ(format_number(2.5e-6), "0.0000025");
  EXPECT_EQ(format_number(1234.56, 5), "1234.6");
  EXPECT_EQ(format_number(0), "0");
  EXPECT_EQ(format_number(-3.14159), "-3.14");
}

TEST(DecimalBytes, HaveAFittingUnit) {
  EXPECT_EQ(format_decimal({0}), "0 B");
  EXPECT_EQ(format_decimal({36}), "36 B");
  EXPECT_EQ(format_decimal({1050}), "1.05 kB");
  EXPECT_EQ(format_decimal({999'600}), "1 MB");
  EXPECT_EQ(format_decimal({987'000'000}), "987 MB");
  EXPECT_EQ(format_decimal({123'456'000'000'000'000}), "123456 TB");
}

}  // namespace
}  // namespace lockstep::core

#include "core/printable.hpp"

#include <gtest/gtest.h>

#include <string>

#include "core/log.hpp"
#include "core/print.hpp"

namespace lockstep::core {
namespace {

TEST(Printable, LeavesTextAsItIs) {
  for (const char* const text : {"", "plain", "Grüße", "日本語", "𝛼 €", "עברית"}) EXPECT_EQ(printable(text), text);
}

TEST(Printable, ShowsControlCharacters) {
  EXPECT_EQ(printable("a\x1b[2J\x07\t\n"), "a\\x1b[2J\\x07\\x09\\x0a");
  EXPECT_EQ(printable("a\tb\n\r", "\n\t"), "a\tb\n\\x0d");
  EXPECT_EQ(printable("a\x7f\xc2\x9b"
                      "31m"),
            "a\\u007f\\u009b31m");
  EXPECT_EQ(printable("\xc2\x80\xc2\x9f\xc2\xa0"), "\\u0080\\u009f<U+00A0>");
}

TEST(Printable, ShowsMarksOfDirection) {
  EXPECT_EQ(printable("a\u202e\u202ab\u2066\u2069"), "a\\u202e\\u202ab\\u2066\\u2069");
  EXPECT_EQ(printable("\u200e\u200f\u061c\u2028"), "\\u200e\\u200f\\u061c\\u2028");
  EXPECT_EQ(printable("\u2026\u206a"), "\u2026\u206a");  // their neighbours
}

TEST(Printable, ShowsWhatIsNotSeenByItsCodePoint) {
  EXPECT_EQ(printable("\ufeffa\u00a0b\u200bc\u00add\u3000e"), "<U+FEFF>a<U+00A0>b<U+200B>c<U+00AD>d<U+3000>e");
  EXPECT_EQ(printable("\u201cL\u2019Aquila\u201d \u2013 \u20ac"), "\u201cL\u2019Aquila\u201d \u2013 \u20ac");
}

TEST(Printable, ShowsBytesThatAreNoUtf8) {
  EXPECT_EQ(printable("a\x9b"
                      "31m"),
            "a\\x9b31m");
  EXPECT_EQ(printable("\xc3"), "\\xc3");                             // cut off
  EXPECT_EQ(printable("\xc3z"), "\\xc3z");                           // continues with something else
  EXPECT_EQ(printable("\xc1\x9b"), "\\xc1\\x9b");                    // too long for its code
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // beyond Unicode
}

TEST(Printable, IsTheSameOnceMore) {
  const std::string shown = printable("a\x1b\x7f\xc2\x9b\u202e\x9b\u00a0");
  EXPECT_EQ(printable(shown), shown);
}

// All printing goes through here, so no message has to care.
TEST(Printable, IsWhatIsPrinted) {
  testing::internal::CaptureStdout();
  print("name {}\n\tb\n", "\xc2\x9b\x1b[2J");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "name \\u009b\\x1b[2J\n\tb\n");
  testing::internal::CaptureStderr();
  log_error("name \xc2\x9b\x1b[2J\n  fix: \u202e");
  const std::string logged = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(logged.ends_with("error: name \\u009b\\x1b[2J\n  fix: \\u202e\n")) << logged;
}

}  // namespace
}  // namespace lockstep::core

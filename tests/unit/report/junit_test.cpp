#include <gtest/gtest.h>

#include "report/comparison.hpp"

namespace lockstep::report {
namespace {

Compared row(Verdict verdict, const std::string& algorithm = "ring") {
  Compared r{.subject = {"all_reduce", false, "float32", "sum", algorithm, 64}, .verdict = verdict};
  r.n_pairs = 100;
  r.before_us = 10;
  r.now_us = 12;
  r.ratio = 1.2;
  r.ratio_95 = core::Interval{1.15, 1.25};
  r.effect = 1;
  r.p_slower = 0.001;
  return r;
}

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(JUnit, HasATestCasePerRowAndFailsTheSlowerOnes) {
  const Comparison c{.tolerance = 0.05,
                     .files = {"b.json"},
                     .changes = {},
                     .rows = {row(Verdict::slower), row(Verdict::same), row(Verdict::noisy), row(Verdict::gone)}};
  const std::string xml = to_junit(c);
  EXPECT_TRUE(
      xml.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"reduce_all\" "
                      "tests=\"4\" failures=\"1\" errors=\"0\" skipped=\"2\">\n"))
      << xml;
  EXPECT_EQ(count(xml, "<testcase classname=\"reduce_all.all_reduce.float32.sum.ring\" name=\"64 B\""), 4u);
  EXPECT_EQ(count(xml, "</testcase>"), 4u);
  EXPECT_NE(
      xml.find("<failure type=\"slower\" message=\"slower by more than 5 %: +20.0 %: 10 us before, 12 us now; 95 % "
               "interval +15.0 to +25.0 %; p 0.001, effect 1.00, 100 pairs\"/>"),
      std::string::npos)
      << xml;
  EXPECT_EQ(count(xml, "<skipped "), 2u);
  EXPECT_TRUE(xml.ends_with("</testsuites>\n"));
}

TEST(JUnit, IsWellFormedWhateverTheNames) {
  const Comparison c{
      .tolerance = 0.05, .files = {"b.json"}, .changes = {}, .rows = {row(Verdict::slower, "<a & \"b\" 'c'>\x1b\xff")}};
  const std::string xml = to_junit(c);
  EXPECT_NE(xml.find("sum.&lt;a &amp; &quot;b&quot; &apos;c&apos;&gt;\\x1b\\xff\""), std::string::npos) << xml;
  for (const char byte : xml) EXPECT_TRUE(byte == '\n' || (byte >= ' ' && byte <= '~')) << static_cast<int>(byte);
}

}  // namespace
}  // namespace lockstep::report

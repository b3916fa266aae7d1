#include <fmt/format.h>

#include <algorithm>

#include "core/printable.hpp"
#include "report/comparison.hpp"

namespace lockstep::report {
namespace {

// For an attribute's value or text. Shows characters that XML 1.0 cannot contain as \x1b.
std::string escape(std::string_view text) {
  std::string escaped;
  for (const char c : core::printable(text)) {
    switch (c) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '"': escaped += "&quot;"; break;
      case '\'': escaped += "&apos;"; break;
      default: escaped += c;
    }
  }
  return escaped;
}

std::string numbers(const Compared& row) {
  if (!row.ratio) return row.remark;
  std::string text = fmt::format("{:+.1f} %", percent(*row.ratio));
  if (row.before_us && row.now_us)
    text += fmt::format(": {:.4g} us before, {:.4g} us now", *row.before_us, *row.now_us);
  if (row.ratio_95)
    text +=
        fmt::format("; 95 % interval {:+.1f} to {:+.1f} %", percent(row.ratio_95->low), percent(row.ratio_95->high));
  return text + fmt::format("; p {:.2g}, effect {:.2f}, {} pairs", row.p_slower, row.effect, row.n_pairs);
}

std::string outcome(const Compared& row, const Comparison& c) {
  const std::string text = escape(numbers(row));
  switch (row.verdict) {
    case Verdict::slower:
      return fmt::format("<failure type=\"slower\" message=\"slower by more than {:g} %: {}\"/>", 100 * c.tolerance,
                         text);
    case Verdict::noisy: return fmt::format("<skipped message=\"too noisy to decide: {}\"/>", text);
    case Verdict::gone:
      return c.is_cut_short ? "<failure type=\"unfinished\" message=\"the run ended before it\"/>"
                            : "<skipped message=\"not measured now\"/>";
    case Verdict::added: return "<skipped message=\"not in the baseline\"/>";
    case Verdict::same:
    case Verdict::faster: break;
  }
  return fmt::format("<system-out>{}: {}</system-out>", name(row.verdict), text);
}

std::string test_case(const Compared& row, const Comparison& c) {
  const Subject& s = row.subject;
  return fmt::format(
      "    <testcase classname=\"reduce_all.{}.{}.{}.{}{}\" name=\"{} B\" time=\"{:.9f}\">{}</testcase>\n",
      escape(s.collective), escape(s.dtype), escape(s.op), escape(s.algorithm), s.in_place ? ".in_place" : "", s.bytes,
      row.now_us.value_or(0) * 1e-6, outcome(row, c));
}

std::string test_case_together(const Compared& all, const Comparison& c) {
  return fmt::format("    <testcase classname=\"reduce_all\" name=\"all rows together\">{}</testcase>\n",
                     outcome(all, c));
}

}  // namespace

std::string to_junit(const Comparison& c) {
  std::vector<Verdict> verdicts;
  std::string cases;
  for (const Compared& row : c.rows) {
    verdicts.push_back(row.verdict);
    cases += test_case(row, c);
  }
  if (c.overall) {
    verdicts.push_back(c.overall->verdict);
    cases += test_case_together(*c.overall, c);
  }
  const auto count = [&verdicts](Verdict verdict) { return std::ranges::count(verdicts, verdict); };
  const auto n_gone = count(Verdict::gone);
  const auto n_failed = count(Verdict::slower) + (c.is_cut_short ? n_gone : 0);
  const auto n_skipped = count(Verdict::noisy) + count(Verdict::added) + (c.is_cut_short ? 0 : n_gone);
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"reduce_all\" tests=\"{}\" "
      "failures=\"{}\" errors=\"0\" skipped=\"{}\">\n{}  </testsuite>\n</testsuites>\n",
      verdicts.size(), n_failed, n_skipped, cases);
}

}  // namespace lockstep::report

#include <fmt/format.h>

#include <algorithm>

#include "core/table.hpp"
#include "core/units.hpp"
#include "report/comparison.hpp"

namespace lockstep::report {
namespace {

core::Table make_table() {
  using core::Align;
  return core::Table{{{"size", "(B)", 11, Align::right},
                      {"type", "", 8, Align::right},
                      {"op", "", 4, Align::right},
                      {"algorithm", "", 18, Align::left},
                      {"before p50", "(us)", 10, Align::right},
                      {"now p50", "(us)", 10, Align::right},
                      {"change", "(%)", 7, Align::right},
                      {"95 % interval", "(%)", 16, Align::right},
                      {"pairs", "", 5, Align::right},
                      {"effect", "", 6, Align::right},
                      {"p", "", 7, Align::right},
                      {"detectable", "(%)", 10, Align::right},
                      {"verdict", "", 7, Align::left}},
                     "# "};
}

std::string microseconds(const std::optional<double>& us) { return us ? core::format_number(*us, 4) : "-"; }

std::string change(const std::optional<double>& ratio) { return ratio ? fmt::format("{:+.1f}", percent(*ratio)) : "-"; }

std::string interval(const std::optional<core::Interval>& ratio) {
  return ratio ? fmt::format("[{:+.1f}, {:+.1f}]", percent(ratio->low), percent(ratio->high)) : "-";
}

std::vector<std::string> cells(const Compared& row) {
  const Subject& s = row.subject;
  return {fmt::format("{}", s.bytes),
          s.dtype,
          s.op,
          s.algorithm,
          microseconds(row.before_us),
          microseconds(row.now_us),
          change(row.ratio),
          interval(row.ratio_95),
          fmt::format("{}", row.n_pairs),
          row.n_pairs > 0 ? fmt::format("{:.2f}", row.effect) : "-",
          row.n_pairs > 0 ? fmt::format("{:.2g}", row.p_slower) : "-",
          change(row.told_from),
          std::string{name(row.verdict)} + (row.remark.empty() ? "" : ": " + row.remark)};
}

std::string launches(std::size_t n) { return fmt::format("{} launch{}", n, n == 1 ? "" : "es"); }

std::string together(const Compared& all, bool is_by_launch) {
  if (!all.ratio) return "no round of both sides had the same distances between cores in enough rows";
  const std::string_view unit = is_by_launch ? "launches" : "rounds";
  std::string text =
      fmt::format("{} %, 95 % interval {} %, {} {} against {}, p {:.2g}: {}", change(all.ratio), interval(all.ratio_95),
                  all.n_now, unit, all.n_before, all.p_slower, name(all.verdict));
  if (all.told_from) text += fmt::format("; a slow-down of {:.0f} % would have been detected", percent(*all.told_from));
  return text;
}

// The slow-down that would have been detected in half of the rows, and in the best row.
std::string sensitivity(const Comparison& c) {
  std::vector<double> ratios;
  for (const Compared& row : c.rows) {
    if (row.told_from) ratios.push_back(*row.told_from);
  }
  std::ranges::sort(ratios);
  const std::size_t n_compared = c.rows.size() - c.count(Verdict::gone) - c.count(Verdict::added);
  const std::size_t half = (n_compared + 1) / 2;
  if (ratios.empty()) return "too few visits to detect a slow-down of any size in any row";
  if (ratios.size() < half)
    return fmt::format("only {} of {} rows have enough visits to detect a slow-down", ratios.size(), n_compared);
  return fmt::format(
      "a slow-down of {:.0f} % would have been detected in half of the rows, one of {:.0f} % in the best row",
      percent(ratios[half - 1]), percent(ratios.front()));
}

std::string verdict_line(const Comparison& c) {
  const double allowed = 100 * c.tolerance;
  if (c.is_slower()) return fmt::format("SLOWER by more than {:g} %: {}", allowed, name_slower(c));
  if (!c.is_passed())
    return fmt::format("UNFINISHED: the run ended before {} of {} rows", c.count(Verdict::gone),
                       c.rows.size() - c.count(Verdict::added));
  const std::size_t n_told = c.count(Verdict::same) + c.count(Verdict::faster);
  if (n_told == 0)
    return fmt::format("nothing is known to be slower by more than {:g} %, but these times are too noisy to tell",
                       allowed);
  return fmt::format("nothing is known to be slower by more than {:g} %", allowed);
}

}  // namespace

std::string to_text(const Comparison& c) {
  std::string text =
      fmt::format("#\n# now ({}) against {} ({}): visits of both sides with the same distance between cores\n",
                  launches(c.n_launches_now), fmt::join(c.files, ", "), launches(c.files.size()));
  for (const std::string& changed : c.changes) text += fmt::format("# changed: {}\n", changed);
  text += "#\n";
  const core::Table table = make_table();
  text += table.header();
  for (const Compared& row : c.rows) {
    if (row.verdict != Verdict::gone && row.verdict != Verdict::added) text += table.row(cells(row));
  }
  const auto mention = [&](Verdict verdict, std::string_view words) {
    if (c.count(verdict) > 0) text += fmt::format("# {}: {}\n", words, name_rows(c, verdict));
  };
  mention(Verdict::gone, "not measured now");
  mention(Verdict::added, "not in the baseline");
  mention(Verdict::faster, fmt::format("faster by more than {:g} %", 100 * c.tolerance));
  text += fmt::format("# {} rows: {} same, {} slower, {} faster, {} noisy; {}\n", c.rows.size(), c.count(Verdict::same),
                      c.count(Verdict::slower), c.count(Verdict::faster), c.count(Verdict::noisy), sensitivity(c));
  if (c.overall) text += fmt::format("# all rows together: {}\n", together(*c.overall, c.is_by_launch));
  return text + fmt::format("# Regression           : {}\n", verdict_line(c));
}

}  // namespace lockstep::report

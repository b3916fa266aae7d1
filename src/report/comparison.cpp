#include "report/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/units.hpp"
#include "report/rounds.hpp"
#include "report/shift.hpp"

namespace lockstep::report {
namespace {

constexpr double significant = 0.05;
// With this many launches on each side, launches are the unit: of four and four, one order in 70 is the extreme one.
constexpr std::size_t enough_launches = 4;
// Fewer rounds represent only a moment.
constexpr std::size_t fewest_rounds = 5;
// The level at which the launches of a row agree with its visits. There are too few of them for Holm's factors.
constexpr double launches_agree = 0.01;

using Visits = std::vector<Placed>;

// Round numbers continue from launch to launch; a missing round of one launch takes none from the next.
std::map<Subject, Visits> pool(std::span<const Results> launches) {
  std::map<Subject, Visits> pooled;
  std::size_t first_round = 0;
  for (std::size_t launch = 0; launch < launches.size(); ++launch) {
    std::size_t n_rounds = 0;
    for (const Series& series : launches[launch].series) {
      Visits& visits = pooled[series.subject];
      std::size_t round = first_round;
      for (const Visit& visit : series.visits) visits.push_back({visit, launch, round++});
      n_rounds = std::max(n_rounds, series.visits.size());
    }
    first_round += n_rounds;
  }
  return pooled;
}

Shift shift_of(const Stratum& stratum) { return Shift{std::span{&stratum, 1}}; }

std::vector<Stratum> times_of(const std::vector<Peers>& groups) {
  std::vector<Stratum> strata;
  for (const Peers& peers : groups) strata.push_back(times_of(peers));
  return strata;
}

void describe_times(const std::vector<Stratum>& strata, Compared& row) {
  const auto n_pairs = [](const Stratum& s) { return s.before.size() * s.now.size(); };
  const auto main = std::ranges::max_element(strata, {}, n_pairs);
  if (main == strata.end() || n_pairs(*main) == 0) {
    row.remark = "no visits of both sides have the same distance between cores";
    return;
  }
  row.n_before = main->before.size();
  row.n_now = main->now.size();
  row.before_us = core::summarize(main->before).median;
  row.now_us = core::summarize(main->now).median;
}

struct Judged {
  Compared row;
  Shift shift;
  double p_faster = 1;
  std::optional<Shift> launches{};  ///< if there are enough of them
};

void describe_shift(Judged& judged) {
  const Shift& shift = judged.shift;
  Compared& row = judged.row;
  row.n_pairs = shift.n_pairs();
  row.ratio = shift.ratio();
  row.ratio_95 = shift.interval_95();
  row.effect = shift.effect();
}

Judged measure(const Subject& subject, const std::vector<Peers>& groups, const Points& points, bool has_launches,
               double tolerance) {
  const std::vector<Stratum> strata = times_of(groups);
  Judged judged{{.subject = subject}, Shift{strata}};
  describe_times(strata, judged.row);
  describe_shift(judged);
  judged.row.p_slower = judged.shift.p_above(1 + tolerance);
  judged.p_faster = judged.shift.p_below(1 / (1 + tolerance));
  if (has_launches) judged.launches = shift_of(by_launch(points));
  return judged;
}

bool is_within(const Compared& row, double tolerance) {
  return row.ratio_95 && row.ratio_95->low >= 1 / (1 + tolerance) && row.ratio_95->high <= 1 + tolerance;
}

Verdict judge(const Judged& judged, double tolerance) {
  if (judged.row.p_slower < significant) return Verdict::slower;
  if (judged.p_faster < significant) return Verdict::faster;
  return is_within(judged.row, tolerance) ? Verdict::same : Verdict::noisy;
}

// Visits of one launch are more alike than visits of two.
bool do_launches_disagree(const Judged& judged, double tolerance) {
  if (!judged.launches) return false;
  switch (judged.row.verdict) {
    case Verdict::slower: return judged.launches->p_above(1 + tolerance) >= launches_agree;
    case Verdict::faster: return judged.launches->p_below(1 / (1 + tolerance)) >= launches_agree;
    default: return false;
  }
}

// Corrects the probabilities for the number of rows, as Holm does. Half of the error probability is for all rows
// together, half for the single rows (`n_shares` 2); if all rows together are slower, the rows get their half (1).
void adjust(std::vector<Judged>& all, double n_shares, double tolerance) {
  std::vector<double> slower, faster;
  for (const Judged& one : all) {
    slower.push_back(one.row.p_slower);
    faster.push_back(one.p_faster);
  }
  slower = adjust_holm(slower);
  faster = adjust_holm(faster);
  for (std::size_t i = 0; i < all.size(); ++i) {
    Judged& one = all[i];
    one.row.p_slower = std::min(1.0, n_shares * slower[i]);
    one.p_faster = std::min(1.0, n_shares * faster[i]);
    one.row.verdict = judge(one, tolerance);
    if (do_launches_disagree(one, tolerance)) {
      one.row.verdict = Verdict::noisy;
      one.row.remark = "variation between launches is as large";
    }
    const auto bound = one.shift.lower_bound(significant / n_shares / static_cast<double>(all.size()));
    if (bound) one.row.told_from = (1 + tolerance) * *one.row.ratio / *bound;
  }
}

// For rounds, which share the conditions of their launch: the tolerance must be exceeded beyond chance.
Compared judge_rounds(const Points& means, double tolerance) {
  Judged judged{{.subject = {}, .n_before = means.before.size(), .n_now = means.now.size()}, shift_of(each(means))};
  describe_shift(judged);
  judged.row.p_slower = std::min(1.0, 2 * judged.shift.p_above(1 + tolerance));
  judged.p_faster = std::min(1.0, 2 * judged.shift.p_below(1 / (1 + tolerance)));
  judged.row.verdict = judge(judged, tolerance);
  if (std::min(means.before.size(), means.now.size()) < fewest_rounds) {
    judged.row.verdict = Verdict::noisy;
    return judged.row;
  }
  const auto bound = judged.shift.lower_bound(significant / 2);
  if (bound) judged.row.told_from = (1 + tolerance) * *judged.row.ratio / *bound;
  return judged.row;
}

// For launches, each with its own conditions: any difference must be beyond chance, and exceed the tolerance.
Compared judge_launches(const Points& means, double tolerance) {
  const Stratum launches = by_launch(means);
  Judged judged{{.subject = {}, .n_before = launches.before.size(), .n_now = launches.now.size()}, shift_of(launches)};
  describe_shift(judged);
  Compared& row = judged.row;
  row.p_slower = std::min(1.0, 2 * judged.shift.p_above(1));
  judged.p_faster = std::min(1.0, 2 * judged.shift.p_below(1));
  row.verdict = judge(judged, tolerance);
  if (row.ratio && *row.ratio <= 1 + tolerance && *row.ratio >= 1 / (1 + tolerance))
    row.verdict = is_within(row, tolerance) ? Verdict::same : Verdict::noisy;
  const auto bound = judged.shift.lower_bound(significant / 2);
  if (bound) row.told_from = std::max(1 + tolerance, *row.ratio / *bound);
  return row;
}

// In the order of the first launch, then rows of other launches.
std::vector<Subject> order_of(std::span<const Results> launches) {
  std::vector<Subject> subjects;
  std::set<Subject> known;
  for (const Results& launch : launches)
    for (const Series& series : launch.series)
      if (known.insert(series.subject).second) subjects.push_back(series.subject);
  return subjects;
}

// Returns, for every launch, how it differs from the first one now.
std::vector<std::string> changes_between(std::span<const Results> before, std::span<const Results> now) {
  std::vector<std::string> changes;
  const auto add = [&changes](std::string change) {
    if (std::ranges::find(changes, change) == changes.end()) changes.push_back(std::move(change));
  };
  for (const auto& side : {before, now.subspan(1)})
    for (const Results& launch : side) {
      for (std::string& change : name_changes(launch, now.front())) add(std::move(change));
      if (!launch.is_complete) add(fmt::format("{} comes from a run that ended early", launch.name));
      if (launch.n_wrong > 0) add(fmt::format("{} has wrong elements: {}", launch.name, launch.n_wrong));
    }
  return changes;
}

std::string name_sizes(const std::vector<std::string>& sizes, bool is_each_named) {
  constexpr std::size_t most_named = 4;
  if (sizes.size() <= most_named || is_each_named) return fmt::format("{}", fmt::join(sizes, ", "));
  return fmt::format("{} sizes, {} to {}", sizes.size(), sizes.front(), sizes.back());
}

template <class Wanted>
std::string name_those(const Comparison& comparison, const Wanted& is_wanted, bool is_each_named) {
  std::vector<std::pair<std::string, std::vector<std::string>>> sizes_of;
  for (const Compared& row : comparison.rows) {
    if (!is_wanted(row)) continue;
    const Subject& s = row.subject;
    const std::string what = fmt::format("{} {} {}", s.algorithm, s.dtype, s.op);
    auto found = std::ranges::find(sizes_of, what, [](const auto& entry) { return entry.first; });
    if (found == sizes_of.end()) found = sizes_of.insert(found, {what, {}});
    found->second.push_back(core::format_bytes({s.bytes}));
  }
  std::vector<std::string> texts;
  for (const auto& [what, sizes] : sizes_of)
    texts.push_back(fmt::format("{} at {}", what, name_sizes(sizes, is_each_named)));
  return fmt::format("{}", fmt::join(texts, "; "));
}

}  // namespace

std::string_view name(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::same: return "same";
    case Verdict::slower: return "slower";
    case Verdict::faster: return "faster";
    case Verdict::noisy: return "noisy";
    case Verdict::gone: return "gone";
    case Verdict::added: break;
  }
  return "added";
}

std::size_t Comparison::count(Verdict verdict) const {
  return static_cast<std::size_t>(std::ranges::count(rows, verdict, &Compared::verdict));
}

bool Comparison::is_slower() const {
  return count(Verdict::slower) > 0 || (overall && overall->verdict == Verdict::slower);
}

bool Comparison::is_passed() const { return !is_slower() && !(is_cut_short && count(Verdict::gone) > 0); }

Comparison compare(std::span<const Results> before, std::span<const Results> now, double tolerance) {
  const bool has_launches = std::min(before.size(), now.size()) >= enough_launches;
  Comparison comparison{.tolerance = tolerance,
                        .is_by_launch = has_launches,
                        .is_cut_short = !now.front().is_complete,
                        .files = {},
                        .n_launches_now = now.size(),
                        .changes = changes_between(before, now),
                        .rows = {}};
  for (const Results& launch : before) comparison.files.push_back(launch.name);
  const auto old = pool(before), fresh = pool(now);
  std::vector<Judged> judged;
  std::vector<Compared> alone;
  Rounds rounds;
  for (const Subject& subject : order_of(now)) {
    const auto found = old.find(subject);
    if (found == old.end()) {
      alone.push_back({.subject = subject, .verdict = Verdict::added});
      continue;
    }
    const std::vector<Peers> groups = split(found->second, fresh.at(subject));
    const Points points = relative(groups);
    judged.push_back(measure(subject, groups, points, has_launches, tolerance));
    rounds.add(points);
  }
  if (judged.size() > 1) {
    const Points means = rounds.means();
    comparison.overall = has_launches ? judge_launches(means, tolerance) : judge_rounds(means, tolerance);
  }
  const bool is_told = comparison.overall && comparison.overall->verdict == Verdict::slower;
  adjust(judged, comparison.overall && !is_told ? 2 : 1, tolerance);
  for (Judged& one : judged) comparison.rows.push_back(std::move(one.row));
  comparison.rows.insert(comparison.rows.end(), alone.begin(), alone.end());
  for (const auto& [subject, visits] : old)
    if (!fresh.contains(subject)) comparison.rows.push_back({.subject = subject, .verdict = Verdict::gone});
  return comparison;
}

double percent(double ratio) noexcept { return 100 * (ratio - 1); }

std::string describe(const Subject& s) {
  return fmt::format("{} {} {} {}", core::format_bytes({s.bytes}), s.dtype, s.op, s.algorithm);
}

// Lists sizes by algorithm, type and op, in order of first appearance.
std::string name_rows(const Comparison& comparison, Verdict verdict) {
  return name_those(
      comparison, [verdict](const Compared& row) { return row.verdict == verdict; }, verdict == Verdict::slower);
}

std::string name_slower(const Comparison& c) {
  if (c.count(Verdict::slower) > 0) return name_rows(c, Verdict::slower);
  return name_those(
      c, [&c](const Compared& row) { return row.ratio && *row.ratio > 1 + c.tolerance; }, true);
}

}  // namespace lockstep::report

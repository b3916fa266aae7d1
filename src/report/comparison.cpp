#include "report/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/units.hpp"
#include "report/shift.hpp"

namespace lockstep::report {
namespace {

constexpr double significant = 0.05;
// By more than this factor it is another distance: cores of one cache, of two caches and of two sockets differ by 2 and
// more.
constexpr double another_distance = 1.5;

using Visits = std::vector<Visit>;

std::map<Subject, Visits> pool(std::span<const Results> launches) {
  std::map<Subject, Visits> pooled;
  for (const Results& launch : launches)
    for (const Series& series : launch.series) {
      Visits& visits = pooled[series.subject];
      visits.insert(visits.end(), series.visits.begin(), series.visits.end());
    }
  return pooled;
}

// The nearest distance of each stratum, ascending; 0 for visits whose distance is not known.
std::vector<double> find_distances(const Visits& before, const Visits& now) {
  std::vector<double> all;
  for (const Visits* side : {&before, &now})
    for (const Visit& visit : *side) all.push_back(visit.core_round_trip_ns.value_or(0));
  std::ranges::sort(all);
  std::vector<double> nearest;
  for (const double ns : all) {
    if (nearest.empty() || ns > nearest.back() * another_distance) nearest.push_back(ns);
  }
  return nearest;
}

std::vector<Stratum> split(const Visits& before, const Visits& now) {
  const std::vector<double> distances = find_distances(before, now);
  std::vector<Stratum> strata(distances.size());
  const auto stratum_of = [&](const Visit& visit) -> Stratum& {
    const auto above = std::ranges::upper_bound(distances, visit.core_round_trip_ns.value_or(0));
    return strata[static_cast<std::size_t>(above - distances.begin()) - 1];
  };
  for (const Visit& visit : before) stratum_of(visit).before.push_back(visit.time_us);
  for (const Visit& visit : now) stratum_of(visit).now.push_back(visit.time_us);
  return strata;
}

void describe_times(const std::vector<Stratum>& strata, Compared& row) {
  const auto n_pairs = [](const Stratum& s) { return s.before.size() * s.now.size(); };
  const auto main = std::ranges::max_element(strata, {}, n_pairs);
  if (main == strata.end() || n_pairs(*main) == 0) {
    row.remark = "cores were never as far apart as before";
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
};

Judged measure(const Subject& subject, const Visits& before, const Visits& now, double tolerance) {
  const std::vector<Stratum> strata = split(before, now);
  Judged judged{{.subject = subject}, Shift{strata}};
  Compared& row = judged.row;
  describe_times(strata, row);
  row.n_pairs = judged.shift.n_pairs();
  row.ratio = judged.shift.ratio();
  row.ratio_95 = judged.shift.interval_95();
  row.effect = judged.shift.effect();
  row.p_slower = judged.shift.p_above(1 + tolerance);
  judged.p_faster = judged.shift.p_below(1 / (1 + tolerance));
  return judged;
}

Verdict judge(const Compared& row, double p_faster, double tolerance) {
  if (row.p_slower < significant) return Verdict::slower;
  if (p_faster < significant) return Verdict::faster;
  const bool is_within =
      row.ratio_95 && row.ratio_95->low >= 1 / (1 + tolerance) && row.ratio_95->high <= 1 + tolerance;
  return is_within ? Verdict::same : Verdict::noisy;
}

// Of as many rows as there are, the one looked at first must be this sure.
void adjust(std::vector<Judged>& all, double tolerance) {
  std::vector<double> slower, faster;
  for (const Judged& one : all) {
    slower.push_back(one.row.p_slower);
    faster.push_back(one.p_faster);
  }
  slower = adjust_holm(slower);
  faster = adjust_holm(faster);
  for (std::size_t i = 0; i < all.size(); ++i) {
    Compared& row = all[i].row;
    row.p_slower = slower[i];
    row.verdict = judge(row, faster[i], tolerance);
    const auto bound = all[i].shift.lower_bound(significant / static_cast<double>(all.size()));
    if (bound) row.told_from = (1 + tolerance) * *row.ratio / *bound;
  }
}

std::vector<Subject> order_of(std::span<const Results> launches) {
  std::vector<Subject> subjects;
  for (const Series& series : launches.front().series) subjects.push_back(series.subject);
  return subjects;
}

// All of them where something is to be done about it.
std::string name_sizes(const std::vector<std::string>& sizes, Verdict verdict) {
  constexpr std::size_t most_named = 4;
  if (sizes.size() <= most_named || verdict == Verdict::slower) return fmt::format("{}", fmt::join(sizes, ", "));
  return fmt::format("{} sizes, {} to {}", sizes.size(), sizes.front(), sizes.back());
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

Comparison compare(std::span<const Results> before, std::span<const Results> now, double tolerance) {
  Comparison comparison{.tolerance = tolerance,
                        .files = {},
                        .n_launches_now = now.size(),
                        .changes = name_changes(before.front(), now.front()),
                        .rows = {}};
  for (const Results& launch : before) comparison.files.push_back(launch.name);
  const auto old = pool(before), fresh = pool(now);
  std::vector<Judged> judged;
  std::vector<Compared> alone;
  for (const Subject& subject : order_of(now)) {
    const auto found = old.find(subject);
    if (found != old.end())
      judged.push_back(measure(subject, found->second, fresh.at(subject), tolerance));
    else
      alone.push_back({.subject = subject, .verdict = Verdict::added});
  }
  adjust(judged, tolerance);
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

// Sizes by algorithm, type and op, in the order these first appear.
std::string name_rows(const Comparison& comparison, Verdict verdict) {
  std::vector<std::pair<std::string, std::vector<std::string>>> sizes_of;
  for (const Compared& row : comparison.rows) {
    if (row.verdict != verdict) continue;
    const Subject& s = row.subject;
    const std::string what = fmt::format("{} {} {}", s.algorithm, s.dtype, s.op);
    auto found = std::ranges::find(sizes_of, what, [](const auto& entry) { return entry.first; });
    if (found == sizes_of.end()) found = sizes_of.insert(found, {what, {}});
    found->second.push_back(core::format_bytes({s.bytes}));
  }
  std::vector<std::string> texts;
  for (const auto& [what, sizes] : sizes_of) texts.push_back(fmt::format("{} at {}", what, name_sizes(sizes, verdict)));
  return fmt::format("{}", fmt::join(texts, "; "));
}

}  // namespace lockstep::report

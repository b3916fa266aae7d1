#include "report/rounds.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep::report {
namespace {

// A larger factor means another distance. Repeated looks at cores that stay differ by a few percent, and times follow
// distances.
constexpr double another_distance = 1.15;
constexpr std::size_t least_share_of_rows = 4;  // a quarter

double distance_of(const Placed& placed) { return placed.visit.core_round_trip_ns.value_or(0); }

// The nearest distance of each group, ascending; 0 for visits whose distance is unknown.
std::vector<double> find_distances(const std::vector<Placed>& before, const std::vector<Placed>& now) {
  std::vector<double> all;
  for (const auto* side : {&before, &now})
    for (const Placed& placed : *side) all.push_back(distance_of(placed));
  std::ranges::sort(all);
  std::vector<double> nearest;
  for (const double ns : all) {
    if (nearest.empty() || ns > nearest.back() * another_distance) nearest.push_back(ns);
  }
  return nearest;
}

std::vector<double> medians_by_launch(const std::vector<Point>& points) {
  std::map<std::size_t, std::vector<double>> launches;
  for (const Point& point : points) launches[point.launch].push_back(point.relative);
  std::vector<double> medians;
  for (const auto& [launch, values] : launches) medians.push_back(core::summarize(values).median);
  return medians;
}

}  // namespace

std::vector<Peers> split(const std::vector<Placed>& before, const std::vector<Placed>& now) {
  const std::vector<double> distances = find_distances(before, now);
  std::vector<Peers> groups(distances.size());
  const auto group_of = [&](const Placed& placed) -> Peers& {
    const auto above = std::ranges::upper_bound(distances, distance_of(placed));
    return groups[static_cast<std::size_t>(above - distances.begin()) - 1];
  };
  for (const Placed& placed : before) group_of(placed).before.push_back(placed);
  for (const Placed& placed : now) group_of(placed).now.push_back(placed);
  return groups;
}

Stratum times_of(const Peers& peers) {
  Stratum times;
  for (const Placed& placed : peers.before) times.before.push_back(placed.visit.time_us);
  for (const Placed& placed : peers.now) times.now.push_back(placed.visit.time_us);
  return times;
}

Points relative(const std::vector<Peers>& row) {
  Points points;
  for (const Peers& peers : row) {
    if (peers.before.empty() || peers.now.empty()) continue;
    const Stratum times = times_of(peers);
    const double usual = std::sqrt(core::summarize(times.before).median * core::summarize(times.now).median);
    for (const Placed& p : peers.before) points.before.push_back({p.launch, p.round, p.visit.time_us / usual});
    for (const Placed& p : peers.now) points.now.push_back({p.launch, p.round, p.visit.time_us / usual});
  }
  return points;
}

Stratum each(const Points& points) {
  Stratum all;
  for (const Point& point : points.before) all.before.push_back(point.relative);
  for (const Point& point : points.now) all.now.push_back(point.relative);
  return all;
}

Stratum by_launch(const Points& points) {
  return {.before = medians_by_launch(points.before), .now = medians_by_launch(points.now)};
}

void Rounds::add(const Points& row) {
  ++n_rows_;
  const auto add_to = [](Sums& sums, const std::vector<Point>& points) {
    for (const Point& point : points) {
      Sum& sum = sums[point.round];
      sum.launch = point.launch;
      ++sum.n_rows;
      sum.logarithms += std::log(point.relative);
    }
  };
  add_to(before_, row.before);
  add_to(now_, row.now);
}

std::vector<Point> Rounds::means_of(const Sums& sums) const {
  std::vector<Point> means;
  for (const auto& [round, sum] : sums) {
    if (sum.n_rows * least_share_of_rows < n_rows_) continue;
    means.push_back({sum.launch, round, std::exp(sum.logarithms / static_cast<double>(sum.n_rows))});
  }
  return means;
}

Points Rounds::means() const { return {.before = means_of(before_), .now = means_of(now_)}; }

}  // namespace lockstep::report

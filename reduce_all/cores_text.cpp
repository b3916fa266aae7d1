#include "reduce_all/cores_text.hpp"

#include <fmt/format.h>

#include <vector>

namespace lockstep::reduce_all {
namespace {

constexpr std::size_t most_ranges = 4;

// Consecutive calls with the same distance, by their first rows.
struct Range {
  const Row* first;
  const Row* last;
  double round_trip_ns;
};

bool is_same_distance(double a, double b) { return a < b * another_distance && b < a * another_distance; }

// The first row of every call that was measured with a known distance, in the order of measuring.
std::vector<const Row*> calls_of(std::span<const Row> rows, bool has_changed) {
  std::vector<const Row*> calls;
  const Row* previous = nullptr;
  for (const Row& row : rows) {
    const bool is_new = previous == nullptr || !is_same_call(*previous, row);
    previous = &row;
    if (is_new && row.distance_changed == has_changed) calls.push_back(&row);
  }
  return calls;
}

std::vector<Range> ranges_of(std::span<const Row> rows) {
  std::vector<Range> ranges;
  for (const Row* row : calls_of(rows, false)) {
    const double ns = row->core_round_trip_ns_before.value_or(0);
    if (ranges.empty() || !is_same_distance(ranges.back().round_trip_ns, ns)) ranges.push_back({row, row, ns});
    ranges.back().last = row;
  }
  return ranges;
}

std::string name_call(const Row& row, std::span<const Row> rows) {
  const bool is_one_series = row.dtype == rows.front().dtype && row.dtype == rows.back().dtype &&
                             row.op == rows.front().op && row.op == rows.back().op;
  const std::string size = core::format_bytes({row.bytes});
  return is_one_series ? size : fmt::format("{} {} {}", size, row.dtype, row.op);
}

std::string name_range(const Range& range, std::span<const Row> rows) {
  const std::string first = name_call(*range.first, rows);
  const std::string last = name_call(*range.last, rows);
  return fmt::format("{} at {:.0f} ns", first == last ? first : first + " to " + last, range.round_trip_ns);
}

}  // namespace

std::string describe_cores(const CoreReach& reach, std::size_t n_ranks) {
  const CoreDistance& trip = reach.round_trip;
  const std::string way =
      n_ranks == 2 ? fmt::format("a cache line takes {:.0f} ns between the ranks (round trip {:.0f} ns)",
                                 trip.farthest_ns / 2, trip.farthest_ns)
                   : fmt::format(
                         "a cache line takes {:.0f} to {:.0f} ns between neighbouring ranks (round trip: nearest "
                         "{:.0f}, median {:.0f}, farthest {:.0f} ns)",
                         trip.nearest_ns / 2, trip.farthest_ns / 2, trip.nearest_ns, trip.median_ns, trip.farthest_ns);
  return fmt::format("{}; {} that another rank just wrote are read at {:.1f} GB/s", way, core::format_bytes(reach.read),
                     reach.read_GBps);
}

std::string cores_cell(const Row& row) {
  if (!row.core_round_trip_ns_before) return "-";
  if (!row.distance_changed.value_or(false)) return fmt::format("{:.0f}", *row.core_round_trip_ns_before);
  return fmt::format("{:.0f}>{:.0f}", *row.core_round_trip_ns_before, row.core_round_trip_ns_after.value_or(0));
}

std::string name_moving(std::span<const Row> rows) {
  std::string text;
  for (const Row* row : calls_of(rows, true)) text += (text.empty() ? "" : ", ") + name_call(*row, rows);
  return text;
}

std::string name_distances(std::span<const Row> rows) {
  const std::vector<Range> ranges = ranges_of(rows);
  if (ranges.size() < 2) return "";
  std::string text;
  for (std::size_t i = 0; i < ranges.size() && i < most_ranges; ++i)
    text += (i == 0 ? "" : ", ") + name_range(ranges[i], rows);
  if (ranges.size() > most_ranges) text += fmt::format(" and {} more changes", ranges.size() - most_ranges);
  return text;
}

}  // namespace lockstep::reduce_all

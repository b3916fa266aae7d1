#include "reduce_all/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>
#include <utility>

#include "reduce_all/cores_text.hpp"
#include "reduce_all/participants.hpp"

namespace lockstep::reduce_all {
namespace {

constexpr std::uint64_t large_bytes = std::uint64_t{16} << 20;
constexpr double noteworthy_ratio = 1.1;  // smaller ratios are not reported

std::string size_text(std::uint64_t bytes) { return core::format_bytes({bytes}); }

// "from 8 B to 64 KiB", "at 8 B".
std::string range_text(std::uint64_t first, std::uint64_t last) {
  if (first == last) return fmt::format("at {}", size_text(first));
  return fmt::format("from {} to {}", size_text(first), size_text(last));
}

// The reliable rows of the first type and op. A row of `auto` becomes one of the algorithm it ran.
std::vector<Row> first_series(std::span<const Row> rows) {
  std::vector<Row> series;
  for (const Row& row : rows) {
    const bool is_of_first = row.dtype == rows.front().dtype && row.op == rows.front().op;
    if (!is_of_first || row.distance_changed.value_or(false) || is_repeated(row, rows)) continue;
    series.push_back(row);
    if (row.chosen) series.back().algorithm = *std::exchange(series.back().chosen, std::nullopt);
  }
  return series;
}

// The fastest row of every size, ascending.
std::vector<Row> best_rows(const std::vector<Row>& series) {
  std::vector<Row> best;
  for (const Row& row : series) {
    const bool is_tie = !best.empty() && best.back().bytes == row.bytes;
    if (is_best(row, series) && !is_tie) best.push_back(row);
  }
  return best;
}

// Neighbouring sizes with the same winner as one range.
std::string name_winners(const std::vector<Row>& best) {
  std::string text;
  for (std::size_t begin = 0, end = 0; begin < best.size(); begin = end) {
    while (end < best.size() && best[end].algorithm == best[begin].algorithm) ++end;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", best[begin].algorithm,
                        range_text(best[begin].bytes, best[end - 1].bytes));
  }
  return text;
}

// Geometric mean of the winner's speed-up over the library; empty if the library did not take part.
std::string compare_with_library(const std::vector<Row>& series, const std::vector<Row>& best) {
  double log_sum = 0;
  int n = 0;
  std::string library;
  for (const Row& winner : best) {
    const auto own = std::find_if(series.begin(), series.end(), [&winner](const Row& row) {
      return row.bytes == winner.bytes && is_the_librarys(row.algorithm);
    });
    if (own == series.end()) continue;
    library = own->algorithm;
    log_sum += std::log(own->time_us_p50 / winner.time_us_p50);
    ++n;
  }
  if (n == 0) return "";
  const double ratio = std::exp(log_sum / n);
  const bool is_one_winner = std::all_of(best.begin(), best.end(),
                                         [&best](const Row& row) { return row.algorithm == best.front().algorithm; });
  if (is_one_winner && is_the_librarys(best.front().algorithm)) return "";
  const std::string_view choice = is_one_winner ? "it" : "choosing by size";
  if (ratio < noteworthy_ratio)
    return fmt::format("; {} gains less than 10 % over the MPI library's own choice (`{}`)", choice, library);
  return fmt::format("; {} is {:.1f} times as fast as the MPI library's own choice (`{}`){}", choice, ratio, library,
                     n > 1 ? ", on average" : "");
}

std::string name_best(const std::vector<Row>& series, const std::vector<Row>& best) {
  const bool is_choice = std::any_of(series.begin(), series.end(),
                                     [&series](const Row& row) { return row.algorithm != series.front().algorithm; });
  if (!is_choice) return "";
  return fmt::format("Fastest here: {}{}.", name_winners(best), compare_with_library(series, best));
}

std::string rate_large(const std::vector<Row>& best, const VerdictContext& context) {
  const Row& largest = best.back();
  if (largest.bytes < large_bytes && !context.is_complete)
    return fmt::format("The run ended at {}, so the bandwidth is unknown: it needs sizes of at least {}.",
                       size_text(largest.bytes), size_text(large_bytes));
  if (largest.bytes < large_bytes) return "";
  const std::string_view by = largest.limit_by == name(LimitedBy::cores) ? "only reading what other ranks wrote"
                              : largest.limit_by == name(LimitedBy::links)
                                  ? "only exchanging over the links between GPUs"
                                  : "copying alone";
  std::string text =
      fmt::format("At {} it moves {:.1f} GB/s of vector per rank, {:.0f} % of what all ranks reach by {} ({:.1f} GB/s)",
                  size_text(largest.bytes), largest.algbw_GBps, largest.limit_percent, by, largest.limit_GBps);
  if (context.n_nodes > 1 && largest.limit_by != name(LimitedBy::links)) text += "; the network takes part of the rest";
  return text + ".";
}

std::string rate_small(const std::vector<Row>& best) {
  const Row& smallest = best.front();
  return fmt::format("The shortest call ({}) takes {}.", size_text(smallest.bytes),
                     core::format_seconds({smallest.time_us_p50 * 1e-6}));
}

std::string judge(std::span<const Row> rows, const VerdictContext& context) {
  const std::uint64_t n_wrong =
      std::accumulate(rows.begin(), rows.end(), std::uint64_t{0},
                      [](std::uint64_t sum, const Row& row) { return sum + row.wrong.value_or(0); });
  if (n_wrong > 0)
    return fmt::format("{} elements were wrong: find out why before you trust any result of this machine.", n_wrong);
  if (context.n_warnings > 0)
    return fmt::format("See the {} above: {} makes these times doubtful.",
                       context.n_warnings == 1 ? "warning" : fmt::format("{} warnings", context.n_warnings),
                       context.n_warnings == 1 ? "it" : "each of them");
  if (!context.is_complete)
    return "The run ended early, so sizes are missing: give it more time, or use an idle machine.";
  if (const std::string moving = name_moving(rows); !moving.empty())
    return fmt::format("The cores kept moving while {} {} measured: do not trust times marked `>`.", moving,
                       moving.find(',') == std::string::npos ? "was" : "were");
  if (const std::string distances = name_distances(rows); !distances.empty())
    return fmt::format(
        "The distances between cores changed (round trip of {}), so do not compare times of different sizes.",
        distances);
  return "";
}

}  // namespace

std::vector<std::string> verdict(std::span<const Row> rows, const VerdictContext& context) {
  if (rows.empty()) return {"Nothing was measured, so there is no result for this machine."};
  const std::vector<Row> series = first_series(rows);
  const std::vector<Row> best = best_rows(series);
  std::vector<std::string> sentences;
  const auto say = [&sentences](std::string sentence) {
    if (!sentence.empty()) sentences.push_back(std::move(sentence));
  };
  const bool is_idle = context.n_ranks == 1 && rows.front().in_place;
  if (is_idle)
    say("One rank has nothing to copy in place, so these are empty calls: start more ranks, for example with --nproc "
        "2.");
  else if (context.n_ranks == 1)
    say("One rank does not communicate, so these are copy times: start more ranks, for example with --nproc 2.");
  else if (!best.empty())
    say(name_best(series, best));
  if (!best.empty()) {
    say(rate_small(best));
    if (!is_idle) say(rate_large(best, context));
  }
  say(judge(rows, context));
  return sentences;
}

}  // namespace lockstep::reduce_all

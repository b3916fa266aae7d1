// Compares two sets of results, row by row, and decides whether anything is slower.
// Invariant: a pure function of results; times are compared only with equal distances between cores, and every row of
// either side is reported.
// Used by reduce_all's --baseline.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/statistics.hpp"
#include "report/results.hpp"

namespace lockstep::report {

/// `noisy`: too uncertain to decide. `gone`, `added`: on one side only.
enum class Verdict { same, slower, faster, noisy, gone, added };
[[nodiscard]] std::string_view name(Verdict verdict) noexcept;

/// One row. Times and visits belong to the largest number of pairs with equal core distances; ratios are of all pairs,
/// now / before.
struct Compared {
  Subject subject;
  Verdict verdict = Verdict::noisy;
  std::string remark{};  ///< why it could not be decided, if there is more to say than noise
  std::size_t n_before = 0;
  std::size_t n_now = 0;
  std::size_t n_pairs = 0;
  std::optional<double> before_us{};
  std::optional<double> now_us{};
  std::optional<double> ratio{};
  std::optional<core::Interval> ratio_95{};
  double effect = 0.5;                ///< probability that a visit now takes longer than one before
  double p_slower = 1;                ///< that this is chance and nothing is slower than allowed; adjusted for all rows
  std::optional<double> told_from{};  ///< the ratio from which a slow-down would have been detected
};

struct Comparison {
  double tolerance = 0;  ///< 0.05: up to 5 % longer still counts as the same
  /// All rows of both sides together, if there are several: the unit is launches, or rounds of them, instead of visits.
  std::optional<Compared> overall{};
  bool is_by_launch = false;       ///< whether each side had enough launches to use them as units
  bool is_cut_short = false;       ///< whether the run now ended before everything was measured
  std::vector<std::string> files;  ///< of the baseline
  std::size_t n_launches_now = 1;
  std::vector<std::string> changes;  ///< other differences
  std::vector<Compared> rows;

  [[nodiscard]] std::size_t count(Verdict verdict) const;
  [[nodiscard]] bool is_slower() const;
  /// True if nothing is slower, and nothing of the baseline is missing because the run ended early.
  [[nodiscard]] bool is_passed() const;
};

/// Compares launches that are comparable, at least one on each side. Rows are in the order of the first launch now,
/// then rows that are gone.
[[nodiscard]] Comparison compare(std::span<const Results> before, std::span<const Results> now, double tolerance);

/// A table, with the verdict in the last line.
[[nodiscard]] std::string to_text(const Comparison& comparison);
/// The member `comparison` of a result file, as in share/schemas/reduce_all-1.schema.json.
[[nodiscard]] nlohmann::ordered_json to_json(const Comparison& comparison);
/// JUnit XML for continuous integration: a test case per row; slower rows failed, noisy ones skipped.
[[nodiscard]] std::string to_junit(const Comparison& comparison);

/// "64 KiB float32 sum ring", for messages.
[[nodiscard]] std::string describe(const Subject& subject);
/// A ratio as a change in percent: 1.05 is 5.
[[nodiscard]] double percent(double ratio) noexcept;
/// "ring float32 sum at 8 B, 64 KiB; shm float32 sum at 1 MiB": the rows of a verdict.
[[nodiscard]] std::string name_rows(const Comparison& comparison, Verdict verdict);
/// The slower rows of a comparison that is slower; if only all rows together are slower, those beyond the tolerance.
[[nodiscard]] std::string name_slower(const Comparison& comparison);

}  // namespace lockstep::report

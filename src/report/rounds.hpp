// Which visits may be compared, and what the visits of one round or launch have in common.
// Invariant: pure functions; visits are compared only with equal distances between cores.
// Used by report/comparison.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "report/results.hpp"
#include "report/shift.hpp"

namespace lockstep::report {

/// A visit among those of all launches of a side. The visits of a round, one of each row, were made within seconds.
struct Placed {
  Visit visit;
  std::size_t launch = 0;
  std::size_t round = 0;  ///< continues from launch to launch
};

/// Visits of a row with equal distances between cores.
struct Peers {
  std::vector<Placed> before;
  std::vector<Placed> now;
};

/// By distance, ascending; unknown distances first.
[[nodiscard]] std::vector<Peers> split(const std::vector<Placed>& before, const std::vector<Placed>& now);

[[nodiscard]] Stratum times_of(const Peers& peers);

/// A time relative to the usual one: 1.1 is 10 % longer.
struct Point {
  std::size_t launch = 0;
  std::size_t round = 0;
  double relative = 1;
};

struct Points {
  std::vector<Point> before;
  std::vector<Point> now;
};

/// The visits of a row; the usual time is the geometric mean of the medians of both sides, with equal distances between
/// cores. Visits without a counterpart on the other side are left out.
[[nodiscard]] Points relative(const std::vector<Peers>& row);

[[nodiscard]] Stratum each(const Points& points);
/// The median of each launch.
[[nodiscard]] Stratum by_launch(const Points& points);

/// What affects a whole round affects all its rows, and the noise of rows averages out.
class Rounds {
 public:
  void add(const Points& row);
  /// The geometric mean over the rows of each round that has at least a quarter of them.
  [[nodiscard]] Points means() const;

 private:
  struct Sum {
    std::size_t launch = 0;
    std::size_t n_rows = 0;
    double logarithms = 0;
  };
  using Sums = std::map<std::size_t, Sum>;  ///< by round
  [[nodiscard]] std::vector<Point> means_of(const Sums& sums) const;

  Sums before_{};
  Sums now_{};
  std::size_t n_rows_ = 0;
};

}  // namespace lockstep::report

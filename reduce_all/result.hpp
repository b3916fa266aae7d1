// One line of the result table, with every key of the result files.
// Invariant: rates are derived from the median time, never averaged; a figure that the sample does not support is
// absent.
// Used by the sweep (makes rows), the reports and the verdict (read them).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/collective.hpp"
#include "core/units.hpp"
#include "reduce_all/limit.hpp"

namespace lockstep::reduce_all {

/// Members carry the names and units of the result files.
struct Row {
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;
  std::string dtype;
  std::string op;  ///< "none" for all_gather
  std::string algorithm;
  std::string collective;
  bool in_place = false;
  bool moves_nothing = false;    ///< one rank in place, but via the host: rates are meaningless; not in result files
  std::uint64_t iterations = 0;  ///< timed samples
  double time_us_p50 = 0;
  std::optional<double> time_us_p50_low;
  std::optional<double> time_us_p50_high;
  std::optional<double> time_us_p99;
  double time_us_min = 0;
  double time_us_max = 0;
  double time_us_mean = 0;
  double algbw_GBps = 0;
  double busbw_GBps = 0;
  double limit_GBps = 0;
  double limit_percent = 0;
  std::string limit_by;  ///< of LimitedBy
  int slowest_rank = 0;
  std::optional<std::uint64_t> wrong;  ///< nothing if no run was checked
  /// Round trip of a cache line between neighbours farthest apart, before the row was measured and when it was done.
  std::optional<double> core_round_trip_ns_before;
  std::optional<double> core_round_trip_ns_after;
  std::optional<bool> distance_changed;      ///< whether cores moved in between; nothing if not measured
  std::optional<std::string> chosen;         ///< the algorithm that `auto` ran; nothing for others
  std::optional<double> device_time_us_p50;  ///< by the device's clock; nothing on the host
  std::vector<double> samples_us;            ///< per iteration, maximum over ranks; empty unless requested
};

/// The slowest rank's time per iteration, and the rank that was slowest most often: the lowest of several.
struct SlowestTimes {
  std::vector<double> seconds;
  int slowest_rank = 0;
};

/// busbw / algbw as defined by nccl-tests, so that figures compare: 2(P-1)/P, or (P-1)/P for the halves. 1 for one
/// rank, which communicates nothing: its algbw is the copy bandwidth.
[[nodiscard]] double bus_factor(comm::Collective collective, int n_ranks);

/// The distance of the cores while a call was measured: the farthest neighbours of a node.
struct DistanceSeen {
  double before_ns = 0;
  double after_ns = 0;
  bool has_changed = false;
};

/// Rank 0's data about one contender after a call was measured.
struct Measured {
  comm::Call call;
  std::string algorithm;
  std::optional<std::string> chosen{};
  bool in_place = false;
  int n_ranks = 1;
  SlowestTimes times;
  std::vector<double> on_device{};  ///< seconds by the device's clock, of the slowest rank; none on the host
  Limit limit{};
  std::optional<DistanceSeen> distance{};
  std::optional<std::uint64_t> n_wrong{};
  bool keep_samples = false;
};

/// The name in result files: "none" for all_gather.
[[nodiscard]] std::string_view op_name(const comm::Call& call) noexcept;

[[nodiscard]] Row make_row(const Measured& measured);

/// The visits of one algorithm at one call, in order.
struct Visited {
  comm::Call call;
  std::string algorithm;
  std::vector<double> time_us{};                            ///< median over the samples of the slowest rank's time
  std::vector<std::optional<double>> core_round_trip_ns{};  ///< as in Row; nothing if not measured
};

[[nodiscard]] bool is_same_call(const Row& a, const Row& b);

/// Whether `row` belongs to `auto`, and `rows` contain the algorithm that it ran: then it adds nothing.
[[nodiscard]] bool is_repeated(const Row& row, std::span<const Row> rows);

/// Whether `row` is the fastest of `rows` for its bytes, dtype and op; never one with wrong elements or a repeated one.
[[nodiscard]] bool is_best(const Row& row, std::span<const Row> rows);

}  // namespace lockstep::reduce_all

#include "reduce_all/result.hpp"

#include <algorithm>

#include "comm/registry.hpp"
#include "core/statistics.hpp"

namespace lockstep::reduce_all {
namespace {

// Host algorithms and libraries have their result in place; `staged` copies it to the host and back.
bool moves_nothing(const Measured& m) {
  if (m.n_ranks > 1 || !m.in_place) return false;
  const comm::Algorithm* const algorithm = comm::find_algorithm(m.chosen.value_or(m.algorithm));
  return algorithm == nullptr || algorithm->needs != comm::Needs::devices;
}

}  // namespace

double bus_factor(comm::Collective collective, int n_ranks) {
  if (n_ranks == 1) return 1;
  const double share = static_cast<double>(n_ranks - 1) / n_ranks;
  return collective == comm::Collective::all_reduce ? 2 * share : share;
}

std::string_view op_name(const comm::Call& call) noexcept {
  return call.collective == comm::Collective::all_gather ? "none" : comm::name(call.op);
}

Row make_row(const Measured& m) {
  const core::Summary time = core::summarize(m.times.seconds);
  const core::Bytes bytes = m.call.bytes();
  Row row;
  row.bytes = bytes.value;
  row.count = m.call.n_elements;
  row.dtype = core::name(m.call.dtype);
  row.op = op_name(m.call);
  row.algorithm = m.algorithm;
  row.chosen = m.chosen;
  row.collective = comm::name(m.call.collective);
  row.in_place = m.in_place;
  row.moves_nothing = moves_nothing(m);
  row.iterations = time.n;
  row.time_us_p50 = time.median * 1e6;
  if (time.median_95) {
    row.time_us_p50_low = time.median_95->low * 1e6;
    row.time_us_p50_high = time.median_95->high * 1e6;
  }
  if (time.p99) row.time_us_p99 = *time.p99 * 1e6;
  row.time_us_min = time.min * 1e6;
  row.time_us_max = time.max * 1e6;
  row.time_us_mean = time.mean * 1e6;
  row.algbw_GBps = core::gigabytes_per_second(bytes, {time.median});
  row.busbw_GBps = row.algbw_GBps * bus_factor(m.call.collective, m.n_ranks);
  row.limit_GBps = m.limit.GBps;
  row.limit_percent = m.limit.GBps > 0 ? 100 * row.algbw_GBps / m.limit.GBps : 0;
  row.limit_by = name(m.limit.by);
  if (m.distance) {
    row.core_round_trip_ns_before = m.distance->before_ns;
    row.core_round_trip_ns_after = m.distance->after_ns;
    row.distance_changed = m.distance->has_changed;
  }
  if (!m.on_device.empty()) row.device_time_us_p50 = core::summarize(m.on_device).median * 1e6;
  row.slowest_rank = m.times.slowest_rank;
  row.wrong = m.n_wrong;
  if (m.keep_samples) {
    for (const double seconds : m.times.seconds) row.samples_us.push_back(seconds * 1e6);
  }
  return row;
}

bool is_same_call(const Row& a, const Row& b) { return a.bytes == b.bytes && a.dtype == b.dtype && a.op == b.op; }

bool is_repeated(const Row& row, std::span<const Row> rows) {
  return row.chosen && std::ranges::any_of(rows, [&row](const Row& other) {
           return is_same_call(other, row) && other.algorithm == *row.chosen;
         });
}

bool is_best(const Row& row, std::span<const Row> rows) {
  if (row.wrong.value_or(0) > 0 || is_repeated(row, rows)) return false;
  return std::ranges::none_of(rows, [&](const Row& other) {
    return is_same_call(other, row) && other.wrong.value_or(0) == 0 && other.time_us_p50 < row.time_us_p50 &&
           !is_repeated(other, rows);
  });
}

}  // namespace lockstep::reduce_all

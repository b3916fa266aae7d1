#include <fmt/format.h>

#include "reduce_all/report.hpp"

namespace lockstep::reduce_all {
namespace {

// Empty where the sample does not support the figure.
std::string number_or_nothing(const std::optional<double>& value) { return value ? fmt::format("{}", *value) : ""; }

}  // namespace

std::string csv_header() {
  return "bytes,count,dtype,op,algorithm,collective,in_place,iterations,time_us_p50,time_us_p50_low,time_us_p50_high,"
         "time_us_p99,time_us_min,time_us_max,time_us_mean,algbw_GBps,busbw_GBps,limit_GBps,limit_percent,slowest_rank,"
         "wrong,limit_by,core_round_trip_ns_before,core_round_trip_ns_after,distance_changed\n";
}

std::string csv_row(const Row& r) {
  return fmt::format(
      "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", r.bytes, r.count, r.dtype, r.op,
      r.algorithm, r.collective, r.in_place, r.iterations, r.time_us_p50, number_or_nothing(r.time_us_p50_low),
      number_or_nothing(r.time_us_p50_high), number_or_nothing(r.time_us_p99), r.time_us_min, r.time_us_max,
      r.time_us_mean, r.algbw_GBps, r.busbw_GBps, r.limit_GBps, r.limit_percent, r.slowest_rank,
      r.wrong ? fmt::format("{}", *r.wrong) : "", r.limit_by, number_or_nothing(r.core_round_trip_ns_before),
      number_or_nothing(r.core_round_trip_ns_after), r.distance_changed ? fmt::format("{}", *r.distance_changed) : "");
}

}  // namespace lockstep::reduce_all

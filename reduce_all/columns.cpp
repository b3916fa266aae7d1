#include "reduce_all/columns.hpp"

#include <array>
#include <optional>
#include <type_traits>

namespace lockstep::reduce_all {
namespace {

template <class T>
Value to_value(const T& figure) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
    return static_cast<std::uint64_t>(figure);
  else
    return figure;
}

template <class T>
Value to_value(const std::optional<T>& figure) {
  return figure ? to_value(*figure) : Value{};
}

Value to_value(const std::string& word) { return std::string_view{word}; }

template <auto member>
Value value_of(const Row& row) {
  return to_value(row.*member);
}

constexpr std::array all_columns{
    Column{"bytes", value_of<&Row::bytes>},
    Column{"count", value_of<&Row::count>},
    Column{"dtype", value_of<&Row::dtype>},
    Column{"op", value_of<&Row::op>},
    Column{"algorithm", value_of<&Row::algorithm>},
    Column{"collective", value_of<&Row::collective>},
    Column{"in_place", value_of<&Row::in_place>},
    Column{"iterations", value_of<&Row::iterations>},
    Column{"time_us_p50", value_of<&Row::time_us_p50>},
    Column{"time_us_p50_low", value_of<&Row::time_us_p50_low>},
    Column{"time_us_p50_high", value_of<&Row::time_us_p50_high>},
    Column{"time_us_p99", value_of<&Row::time_us_p99>},
    Column{"time_us_min", value_of<&Row::time_us_min>},
    Column{"time_us_max", value_of<&Row::time_us_max>},
    Column{"time_us_mean", value_of<&Row::time_us_mean>},
    Column{"algbw_GBps", value_of<&Row::algbw_GBps>},
    Column{"busbw_GBps", value_of<&Row::busbw_GBps>},
    Column{"limit_GBps", value_of<&Row::limit_GBps>},
    Column{"limit_percent", value_of<&Row::limit_percent>},
    Column{"slowest_rank", value_of<&Row::slowest_rank>},
    Column{"wrong", value_of<&Row::wrong>},
    Column{"limit_by", value_of<&Row::limit_by>},
    Column{"core_round_trip_ns_before", value_of<&Row::core_round_trip_ns_before>},
    Column{"core_round_trip_ns_after", value_of<&Row::core_round_trip_ns_after>},
    Column{"distance_changed", value_of<&Row::distance_changed>},
    Column{"chosen", value_of<&Row::chosen>},
    Column{"device_time_us_p50", value_of<&Row::device_time_us_p50>},
};

}  // namespace

std::span<const Column> columns() noexcept { return all_columns; }

}  // namespace lockstep::reduce_all

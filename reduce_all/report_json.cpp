#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "metrics/fingerprint.hpp"
#include "reduce_all/report.hpp"

namespace lockstep::reduce_all {
namespace {

using Json = nlohmann::ordered_json;  // keys in the order written here

Json number_or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json cores(const RunInfo& info) {
  if (!info.cores) return nullptr;
  const CoreReach& c = *info.cores;
  return {{"round_trip_ns_nearest", c.round_trip.nearest_ns},
          {"round_trip_ns_median", c.round_trip.median_ns},
          {"round_trip_ns_farthest", c.round_trip.farthest_ns},
          {"read_bytes", c.read.value},
          {"read_GBps", c.read_GBps}};
}

// But for the placement.
Json meta(const RunInfo& info, const Json& places) {
  const Options& o = info.options;
  Json meta{{"started", info.environment.time},
            {"arguments", o.arguments},
            {"ranks", places["ranks"]},
            {"nodes", places["nodes"]},
            {"simulated_nodes", info.simulated_nodes},
            {"algorithms", info.algorithms},
            {"sync", name(o.sync)},
            {"buffers", name(o.buffers)},
            {"seed", o.seed},
            {"limit", info.limit},
            {"cores", cores(info)},
            {"warnings", info.warnings},
            {"binding", places["binding"]}};
  meta.update(metrics::to_json(info.environment));
  return meta;
}

}  // namespace

// A line for each rank, as there may be thousands.
std::string json_meta(const RunInfo& info) {
  const Json places = metrics::to_json(info.topology);
  std::string text = metrics::dump(meta(info, places), 2);
  text.erase(text.size() - 2);  // its last brace
  text += ",\n  \"placement\": [";
  for (const Json& place : places["placement"])
    text += (text.back() == '[' ? "\n    " : ",\n    ") + metrics::dump(place, -1);
  return text + "\n  ]\n}";
}

std::string json_row(const Row& r) {
  Json row{{"bytes", r.bytes},
           {"count", r.count},
           {"dtype", r.dtype},
           {"op", r.op},
           {"algorithm", r.algorithm},
           {"collective", r.collective},
           {"in_place", r.in_place},
           {"iterations", r.iterations},
           {"time_us_p50", r.time_us_p50},
           {"time_us_p50_low", number_or_null(r.time_us_p50_low)},
           {"time_us_p50_high", number_or_null(r.time_us_p50_high)},
           {"time_us_p99", number_or_null(r.time_us_p99)},
           {"time_us_min", r.time_us_min},
           {"time_us_max", r.time_us_max},
           {"time_us_mean", r.time_us_mean},
           {"algbw_GBps", r.algbw_GBps},
           {"busbw_GBps", r.busbw_GBps},
           {"limit_GBps", r.limit_GBps},
           {"limit_percent", r.limit_percent},
           {"slowest_rank", r.slowest_rank},
           {"wrong", r.wrong ? Json(*r.wrong) : Json()},
           {"limit_by", r.limit_by},
           {"core_round_trip_ns_before", number_or_null(r.core_round_trip_ns_before)},
           {"core_round_trip_ns_after", number_or_null(r.core_round_trip_ns_after)},
           {"distance_changed", r.distance_changed ? Json(*r.distance_changed) : Json()}};
  if (!r.samples_us.empty()) row["samples_us"] = r.samples_us;
  return metrics::dump(row, -1);
}

// The frame is written by hand, because rows are turned into text once, when they arrive, and not again at every size.
std::string json_document(const std::string& meta, const std::string& rows, bool is_complete) {
  return fmt::format(
      "{{\n\"schema\": \"lockstep.reduce_all\",\n\"schema_version\": 1,\n\"complete\": {},\n"
      "\"meta\": {},\n\"results\": [\n{}\n]\n}}\n",
      is_complete, meta, rows);
}

}  // namespace lockstep::reduce_all

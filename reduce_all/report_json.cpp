#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "reduce_all/report.hpp"

namespace lockstep::reduce_all {
namespace {

using Json = nlohmann::ordered_json;  // keys in the order written here

Json optional_number(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json placement(const runtime::Topology& topology) {
  Json places = Json::array();
  for (const runtime::Place& place : topology.places)
    places.push_back({{"rank", place.rank},
                      {"host", place.host},
                      {"node", place.node},
                      {"local_rank", place.local_rank},
                      {"cpus", place.cpus},
                      {"socket", place.socket},
                      {"core", place.core},
                      {"numa", place.numa}});
  return places;
}

Json environment_variables(const runtime::Environment& environment) {
  Json variables = Json::object();
  for (const auto& [key, value] : environment.variables) variables[key] = value;
  return variables;
}

Json meta(const RunInfo& info) {
  const runtime::Environment& e = info.environment;
  const Options& o = info.options;
  return {{"started", e.time},
          {"arguments", o.arguments},
          {"ranks", info.topology.places.size()},
          {"nodes", info.topology.n_nodes},
          {"simulated_nodes", info.simulated_nodes},
          {"algorithms", info.algorithms},
          {"sync", name(o.sync)},
          {"buffers", name(o.buffers)},
          {"seed", o.seed},
          {"limit", info.limit},
          {"warnings", info.warnings},
          {"binding", info.topology.binding()},
          {"lockstep", e.lockstep},
          {"compiler", e.compiler},
          {"build_type", e.build_type},
          {"mpi_library", e.mpi_library},
          {"mpi_standard", e.mpi_standard},
          {"mpi_thread_level", e.mpi_thread_level},
          {"cpu_model", e.cpu_model},
          {"governor", e.governor},
          {"kernel", e.kernel},
          {"transparent_huge_pages", e.transparent_huge_pages},
          {"page_bytes", e.page_bytes},
          {"hosts", e.hosts},
          {"variables", environment_variables(e)},
          {"placement", placement(info.topology)}};
}

// Host names and variables may hold any bytes; what is no UTF-8 is replaced, not fatal.
std::string dump(const Json& json, int indent) { return json.dump(indent, ' ', false, Json::error_handler_t::replace); }

}  // namespace

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
           {"time_us_p50_low", optional_number(r.time_us_p50_low)},
           {"time_us_p50_high", optional_number(r.time_us_p50_high)},
           {"time_us_p99", optional_number(r.time_us_p99)},
           {"time_us_min", r.time_us_min},
           {"time_us_max", r.time_us_max},
           {"time_us_mean", r.time_us_mean},
           {"algbw_GBps", r.algbw_GBps},
           {"busbw_GBps", r.busbw_GBps},
           {"limit_GBps", r.limit_GBps},
           {"limit_percent", r.limit_percent},
           {"slowest_rank", r.slowest_rank},
           {"wrong", r.wrong ? Json(*r.wrong) : Json()}};
  if (!r.samples_us.empty()) row["samples_us"] = r.samples_us;
  return dump(row, -1);
}

// The frame is written by hand, because rows are turned into text once, when they arrive, and not again at every size.
std::string json_document(const RunInfo& info, const std::string& rows, bool is_complete) {
  return fmt::format(
      "{{\n\"schema\": \"lockstep.reduce_all\",\n\"schema_version\": 1,\n\"complete\": {},\n\"meta\": "
      "{},\n\"results\": "
      "[\n{}\n]\n}}\n",
      is_complete, dump(meta(info), 2), rows);
}

}  // namespace lockstep::reduce_all

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "metrics/fingerprint.hpp"
#include "reduce_all/columns.hpp"
#include "reduce_all/report.hpp"

namespace lockstep::reduce_all {
namespace {

using Json = nlohmann::ordered_json;  // keys in the order written here

Json to_json(const Value& value) {
  return std::visit(
      []<class T>(const T& figure) {
        if constexpr (std::is_same_v<T, std::monostate>)
          return Json(nullptr);
        else
          return Json(figure);
      },
      value);
}

Json cores(const BenchmarkInfo& info) {
  if (!info.cores) return nullptr;
  const CoreReach& c = *info.cores;
  return {{"round_trip_ns_nearest", c.round_trip.nearest_ns},
          {"round_trip_ns_median", c.round_trip.median_ns},
          {"round_trip_ns_farthest", c.round_trip.farthest_ns},
          {"read_bytes", c.read.value},
          {"read_GBps", c.read_GBps}};
}

Json device(const BenchmarkInfo& info) {
  const runtime::DeviceChoice& d = info.device;
  if (d.is_host()) return nullptr;
  return {{"name", d.gpu.name},
          {"uuids", d.all},
          {"shared", d.is_shared},
          {"graph", info.graph},
          {"register", comm::name(info.registration)},
          {"driver_cuda", d.driver},
          {"toolkit_cuda", d.toolkit},
          {"host_to_gpu_GBps", info.host_link ? Json(info.host_link->to_gpu_GBps) : Json(nullptr)},
          {"gpu_to_host_GBps", info.host_link ? Json(info.host_link->from_gpu_GBps) : Json(nullptr)},
          {"nccl_version", info.nccl.empty() ? Json(nullptr) : Json(info.nccl)},
          {"nccl_network", info.connections.networks.empty() ? Json(nullptr) : Json(info.connections.networks)},
          {"nccl_channels", info.connections.n_channels == 0 ? Json(nullptr) : Json(info.connections.n_channels)}};
}

// Without the placement.
Json meta(const BenchmarkInfo& info, const Json& places) {
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
            {"device", device(info)},
            {"warnings", info.warnings},
            {"binding", places["binding"]}};
  meta.update(metrics::to_json(info.environment));
  return meta;
}

}  // namespace

// Writes a line for each rank, because there may be thousands.
std::string json_meta(const BenchmarkInfo& info) {
  const Json places = metrics::to_json(info.topology);
  std::string text = metrics::dump(meta(info, places), 2);
  text.erase(text.size() - 2);  // its last brace
  text += ",\n  \"placement\": [";
  for (const Json& place : places["placement"])
    text += (text.back() == '[' ? "\n    " : ",\n    ") + metrics::dump(place, -1);
  return text + "\n  ]\n}";
}

std::string json_row(const Row& row) {
  Json keys;
  for (const Column& column : columns()) keys[std::string{column.name}] = to_json(column.value(row));
  if (!row.samples_us.empty()) keys["samples_us"] = row.samples_us;
  return metrics::dump(keys, -1);
}

std::string json_visits(std::span<const Visited> visited, bool in_place) {
  std::string text;
  for (const Visited& v : visited) {
    Json round_trips = Json::array();
    for (const std::optional<double>& ns : v.core_round_trip_ns) round_trips.push_back(ns ? Json(*ns) : Json(nullptr));
    const Json keys{{"bytes", v.call.bytes().value},
                    {"dtype", core::name(v.call.dtype)},
                    {"op", op_name(v.call)},
                    {"algorithm", v.algorithm},
                    {"collective", comm::name(v.call.collective)},
                    {"in_place", in_place},
                    {"time_us", v.time_us},
                    {"core_round_trip_ns", round_trips}};
    text += (text.empty() ? "" : ",\n") + metrics::dump(keys, -1);
  }
  return text;
}

// Writes the frame by hand, because rows become text once, when they arrive, and not again at every size.
std::string json_document(const std::string& meta, const std::string& rows, bool is_complete, const std::string& visits,
                          const std::string& comparison) {
  std::string text = fmt::format(
      "{{\n\"schema\": \"lockstep.reduce_all\",\n\"schema_version\": 1,\n\"complete\": {},\n"
      "\"meta\": {},\n\"results\": [\n{}\n]",
      is_complete, meta, rows);
  if (!visits.empty()) text += fmt::format(",\n\"visits\": [\n{}\n]", visits);
  if (!comparison.empty()) text += fmt::format(",\n\"comparison\": {}", comparison);
  return text + "\n}\n";
}

}  // namespace lockstep::reduce_all

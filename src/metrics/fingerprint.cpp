#include "metrics/fingerprint.hpp"

#include <nlohmann/json.hpp>

namespace lockstep::metrics {

using Json = nlohmann::ordered_json;  // keys in the order written here

Json to_json(const runtime::Environment& e) {
  Json variables = Json::object();
  for (const auto& [key, value] : e.variables) variables[key] = value;
  return {{"lockstep", e.lockstep},
          {"compiler", e.compiler},
          {"build_type", e.build_type},
          {"mpi_library", e.mpi_library},
          {"mpi_standard", e.mpi_standard},
          {"mpi_thread_level", e.mpi_thread_level},
          {"cpu_model", e.cpu_model},
          {"instruction_set", e.instruction_set},
          {"governor", e.governor},
          {"kernel", e.kernel},
          {"transparent_huge_pages", e.transparent_huge_pages},
          {"page_bytes", e.page_bytes},
          {"hosts", e.hosts},
          {"variables", variables}};
}

Json to_json(const runtime::Topology& topology) {
  Json placement = Json::array();
  for (const runtime::Place& place : topology.places) {
    placement.push_back({{"rank", place.rank},
                         {"host", place.host},
                         {"node", place.node},
                         {"local_rank", place.local_rank},
                         {"cpus", place.cpus},
                         {"socket", place.socket},
                         {"core", place.core},
                         {"numa", place.numa},
                         {"cache", place.cache}});
  }
  return {{"ranks", topology.places.size()},
          {"nodes", topology.n_nodes},
          {"binding", topology.binding()},
          {"placement", placement}};
}

Json to_json(const runtime::DeviceChoice& device) {
  Json json;
  if (device.is_host())
    json = {{"kind", "host"}, {"why_not_cuda", device.why_not.empty() ? Json{} : Json(device.why_not)}};
  else
    json = {{"kind", "cuda"},
            {"name", device.gpu.name},
            {"uuids", device.all},
            {"is_shared", device.is_shared},
            {"cuda_driver", device.driver},
            {"cuda_toolkit", device.toolkit}};
  return {{"device", json}};
}

std::string dump(const Json& json, int indent) { return json.dump(indent, ' ', false, Json::error_handler_t::replace); }

}  // namespace lockstep::metrics

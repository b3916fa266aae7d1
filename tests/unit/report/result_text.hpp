// Result files for tests, as reduce_all writes them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lockstep::report {

inline nlohmann::json row_of(const std::string& algorithm, std::uint64_t bytes, std::vector<nlohmann::json> times,
                             std::vector<nlohmann::json> round_trips) {
  return {{"bytes", bytes},
          {"dtype", "float32"},
          {"op", "sum"},
          {"in_place", false},
          {"collective", "all_reduce"},
          {"algorithm", algorithm},
          {"time_us", std::move(times)},
          {"core_round_trip_ns", std::move(round_trips)}};
}

inline nlohmann::json result_with(std::vector<nlohmann::json> visits) {
  const nlohmann::json meta{{"ranks", 2},
                            {"nodes", 1},
                            {"simulated_nodes", 0},
                            {"cpu_model", "a processor"},
                            {"instruction_set", "avx2"},
                            {"build_type", "Release"},
                            {"sync", "barrier"},
                            {"buffers", "hot"},
                            {"lockstep", "0.1.0"},
                            {"compiler", "GNU"},
                            {"mpi_library", "Open MPI 4"},
                            {"mpi_thread_level", "single"},
                            {"hosts", {"n1"}},
                            {"binding", "each bound to a core"},
                            {"kernel", "6"},
                            {"governor", "performance"},
                            {"transparent_huge_pages", "madvise"},
                            {"page_bytes", 4096},
                            {"variables", nlohmann::json::object()},
                            {"placement", {{{"node", 0}}, {{"node", 0}}}}};
  return {{"schema", "lockstep.reduce_all"},    {"schema_version", 1},        {"complete", true}, {"meta", meta},
          {"results", nlohmann::json::array()}, {"visits", std::move(visits)}};
}

}  // namespace lockstep::report

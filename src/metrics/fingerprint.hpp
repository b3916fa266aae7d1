// The fingerprint of a run as JSON: its machine, and the places of its ranks.
// Invariant: the same keys in every result file.
// Used by reduce_all's result files and the trainer's run.json.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "runtime/environment.hpp"
#include "runtime/gpu_choice.hpp"
#include "runtime/topology.hpp"

namespace lockstep::metrics {

/// Everything of `environment` except its time, which result files call `started`.
[[nodiscard]] nlohmann::ordered_json to_json(const runtime::Environment& environment);

/// `ranks`, `nodes`, `binding` in one line, and `placement`, one entry per rank.
[[nodiscard]] nlohmann::ordered_json to_json(const runtime::Topology& topology);

/// `device`: host or cuda, and of GPUs which each rank has.
[[nodiscard]] nlohmann::ordered_json to_json(const runtime::DeviceChoice& device);

/// As text; host names and variables may contain any bytes: what is not UTF-8 is replaced. `indent` -1: one line.
[[nodiscard]] std::string dump(const nlohmann::ordered_json& json, int indent);

}  // namespace lockstep::metrics

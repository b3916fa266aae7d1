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

/// `device`: host or cuda, and for GPUs which rank has which.
[[nodiscard]] nlohmann::ordered_json to_json(const runtime::DeviceChoice& device);

/// Returns text. Host names and variables may contain any bytes: replaces what is not UTF-8. `indent` -1: one line.
[[nodiscard]] std::string dump(const nlohmann::ordered_json& json, int indent);

}  // namespace lockstep::metrics

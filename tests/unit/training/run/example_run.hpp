// A made-up run for tests: every record has values that are easy to find again.
// Invariant: the same on every call.
// Used by the tests of training/train's records, texts and folders.
#pragma once

#include <string>
#include <vector>

#include "training/run/directory.hpp"

namespace lockstep::training {

inline runtime::Topology example_topology() {
  runtime::Topology topology;
  topology.n_nodes = 2;
  topology.cores_per_node = {4, 4};
  topology.places = {{.rank = 0, .host = "node1", .cpus = {0}},
                     {.rank = 1, .host = "node2", .node = 1, .cpus = {0, 1}}};
  return topology;
}

inline UseRecord example_forecast() {
  return {.states = core::Bytes{51'000'000},
          .pool = core::Bytes{0},
          .peak = core::Bytes{1'250'000'000},
          .sent_bytes = 409e6,
          .n_messages = 128};
}

inline UseRecord example_use() {
  return {.states = core::Bytes{51'000'000},
          .peak = core::Bytes{1'234'000'000},
          .sent_bytes = 409e6,
          .n_messages = 128.5,
          .communication = core::Seconds{0.012}};
}

inline RunInfo example_info() {
  RunInfo info{.arguments = {"train", "toy", "50", "10"},
               .recipe_name = "toy",
               .recipe_json = R"({"global_batch": 64, "optimizer": {"kind": "sgd", "lr": 0.001}})",
               .strategy = "zero1",
               .why_strategy = "ddp needs 31 GB of 27 GB on node node1",
               .forecast = example_forecast(),
               .resume = {SameBits::any_ranks,
                          "bit-identical to an uninterrupted run, on any number of ranks that divides the 8 lanes"},
               .topology = example_topology(),
               .libraries = {{"HDF5", "1.10.8"}},
               .warnings = {"more ranks than cores"}};
  info.environment.time = "2026-01-02T03:04:05Z";
  info.environment.lockstep = "0.1.0";
  info.environment.instruction_set = "avx2";
  info.environment.hosts = {"node1", "node2"};
  info.environment.variables = {{"OMP_NUM_THREADS", "1"}};
  return info;
}

inline constexpr Goal example_goal{.n_epochs = 50, .n_samples = 102'400};

inline metrics::StepSummary example_steps(std::uint64_t n_steps = 200) {
  std::vector<double> step_s;
  for (std::uint64_t i = 0; i < n_steps; ++i) step_s.push_back(0.004 + 1e-6 * static_cast<double>(i % 100));
  return {.n_steps = n_steps,
          .n_samples = 64 * n_steps,
          .time = {0.005 * static_cast<double>(n_steps)},
          .step_s = core::summarize(step_s)};
}

inline metrics::PhaseReport example_phases() {
  std::vector<metrics::PhaseTimes> by_rank(2);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    by_rank[rank][metrics::Phase::forward] = 0.3;
    by_rank[rank][metrics::Phase::data_wait] = 0.02 + 0.04 * static_cast<double>(rank);
    by_rank[rank][metrics::Phase::communication] = 0.16;
    by_rank[rank][metrics::Phase::device] = 0.001;
  }
  return metrics::report_phases(by_rank, example_topology().places);
}

inline Position example_position() { return {.epoch = 3, .step = 400, .samples_seen = 25'600, .elapsed = {2.5}}; }

inline TrainRecord example_train() {
  return make_train_record(example_position(), 0.125, 0.001, example_steps(), example_phases(), example_goal);
}

inline EvaluationRecord example_evaluation() {
  return {.at = example_position(),
          .n_samples = 10'000,
          .loss = 0.0312,
          .top1_percent = 99.02,
          .top5_percent = 100,
          .time = {1.234}};
}

inline FinalRecord example_final() {
  return {.at = {.epoch = 50, .step = 1600, .samples_seen = 102'400, .elapsed = {9.87}},
          .loss = 0.0833,
          .n_ranks = 2,
          .n_nodes = 2,
          .global_batch = 64,
          .n_warmup_steps = 5,
          .steady = example_steps(),
          .phases = example_phases(),
          .evaluation = example_evaluation(),
          .data = DataRecord{.read = {987'000'000}, .n_chunks = 321, .is_cached = true, .mixing = 0.75},
          .forecast = example_forecast(),
          .measured = example_use()};
}

}  // namespace lockstep::training

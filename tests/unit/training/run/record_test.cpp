#include "training/run/record.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "unit/training/run/example_run.hpp"

namespace lockstep::training {
namespace {

using Json = nlohmann::json;

TEST(RunRecord, DerivesRatesFromTimes) {
  const TrainRecord record = example_train();
  EXPECT_DOUBLE_EQ(record.samples_per_s, 64 / 0.005);
  EXPECT_NEAR(record.step_ms_p50, 4.0495, 1e-9);
  EXPECT_NEAR(record.data_wait_ms, 0.04 / 200 * 1e3, 1e-12) << "mean over ranks and steps";
  EXPECT_NEAR(record.communication_ms, 0.16 / 200 * 1e3, 1e-12);
  ASSERT_TRUE(record.eta);
  EXPECT_DOUBLE_EQ(record.eta->value, (102'400 - 25'600) / (64 / 0.005));
}

TEST(RunRecord, NothingIsLeftAtTheEnd) {
  Position at = example_position();
  at.samples_seen = example_goal.n_samples + 1;
  EXPECT_EQ(make_train_record(at, 0, 0, example_steps(), {}, example_goal).eta->value, 0);
}

TEST(RunRecord, WritesALinePerInterval) {
  const std::string text = to_line(example_train());
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const Json line = Json::parse(text);
  EXPECT_EQ(line["kind"], "train");
  EXPECT_EQ(line["epoch"], 3);
  EXPECT_EQ(line["step"], 400);
  EXPECT_EQ(line["samples_seen"], 25'600);
  EXPECT_EQ(line["loss"], 0.125);
  EXPECT_EQ(line["learning_rate"], 0.001);
  EXPECT_EQ(line["samples_per_s"], 12'800);
  EXPECT_EQ(line["eta_s"], 6);
}

TEST(RunRecord, AnInfiniteLossIsNull) {
  TrainRecord record = example_train();
  record.loss = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(Json::parse(to_line(record))["loss"].is_null());
}

TEST(RunRecord, TheRootOfASquaredErrorIsWritten) {
  TrainRecord record = example_train();
  EXPECT_TRUE(Json::parse(to_line(record))["rmse"].is_null());
  record.rmse = 0.25;
  EXPECT_EQ(Json::parse(to_line(record))["rmse"], 0.25);
  EvaluationRecord evaluation = example_evaluation();
  evaluation.rmse = 0.5;
  EXPECT_EQ(Json::parse(to_line(evaluation))["rmse"], 0.5);
  FinalRecord last = example_final();
  last.rmse = 0.75;
  last.evaluation->rmse = 0.5;
  EXPECT_EQ(Json::parse(to_line(last))["rmse"], 0.75);
  EXPECT_EQ(Json::parse(to_line(last))["evaluation"]["rmse"], 0.5);
}

TEST(RunRecord, EvaluationOfNumbersHasNoAccuracy) {
  EXPECT_EQ(Json::parse(to_line(example_evaluation()))["top1_percent"], 99.02);
  EvaluationRecord record = example_evaluation();
  record.top1_percent.reset();
  const Json line = Json::parse(to_line(record));
  EXPECT_TRUE(line["top1_percent"].is_null());
  EXPECT_EQ(line["loss"], 0.0312);
  EXPECT_EQ(line["samples"], 10'000);
}

TEST(RunRecord, TheFinalLineHoldsRatesPhasesAndAccuracy) {
  const Json line = Json::parse(to_line(example_final()));
  EXPECT_EQ(line["state"], "finished");
  EXPECT_EQ(line["ranks"], 2);
  EXPECT_EQ(line["global_batch"], 64);
  EXPECT_EQ(line["steady"]["warmup_steps"], 5);
  EXPECT_EQ(line["steady"]["samples_per_s"], 12'800);
  EXPECT_LE(line["steady"]["step_ms_p50_low"], line["steady"]["step_ms_p50"]);
  EXPECT_EQ(line["evaluation"]["top5_percent"], 100);
  ASSERT_EQ(line["phases"].size(), metrics::all_phases.size());
  EXPECT_EQ(line["phases"][0]["phase"], "data_wait");
  EXPECT_EQ(line["phases"][0]["max_rank"], 1);
  EXPECT_EQ(line["phases"][0]["max_host"], "node2");
}

TEST(RunRecord, TheFinalLineTellsWhatWasRead) {
  FinalRecord record = example_final();
  record.data->n_crc_failures = 2;
  const Json data = Json::parse(to_line(record))["data"];
  EXPECT_EQ(data["read_bytes"], 987'000'000);
  EXPECT_DOUBLE_EQ(data["read_GBps"], 0.1);
  EXPECT_EQ(data["chunks"], 321);
  EXPECT_EQ(data["crc_failures"], 2);
  EXPECT_EQ(data["cached"], true);
  EXPECT_EQ(data["mixing"], 0.75);
  record.data->mixing.reset();
  EXPECT_TRUE(Json::parse(to_line(record))["data"]["mixing"].is_null());
  record.data.reset();
  EXPECT_TRUE(Json::parse(to_line(record))["data"].is_null());
}

TEST(RunRecord, TheForecastIsBesideWhatWasMeasured) {
  FinalRecord record = example_final();
  const Json line = Json::parse(to_line(record));
  EXPECT_DOUBLE_EQ(line["forecast"]["mem_peak_GB"], 1.25);
  EXPECT_DOUBLE_EQ(line["measured"]["mem_peak_GB"], 1.234);
  EXPECT_DOUBLE_EQ(line["measured"]["mem_states_GB"], 0.051);
  EXPECT_DOUBLE_EQ(line["measured"]["sent_GB_per_step"], 0.409);
  EXPECT_EQ(line["forecast"]["n_messages_per_step"], 128);
  EXPECT_EQ(line["measured"]["communication_ms"], 12);
  EXPECT_TRUE(line["forecast"]["communication_ms"].is_null());
  EXPECT_TRUE(line["measured"]["mem_pool_GB"].is_null());
  EXPECT_EQ(line["forecast"].size(), line["measured"].size());
  EXPECT_EQ(Json::parse(use_json(record.measured)), line["measured"]) << "the same in run.json";
  record.forecast.reset();
  EXPECT_TRUE(Json::parse(to_line(record))["forecast"].is_null());
  EXPECT_EQ(use_json({}), "null");
}

TEST(RunRecord, AShortRunClaimsNoRate) {
  FinalRecord record = example_final();
  record.steady.reset();
  EXPECT_TRUE(Json::parse(to_line(record))["steady"].is_null());
  record.steady = example_steps(4);
  const Json steady = Json::parse(to_line(record))["steady"];
  EXPECT_TRUE(steady["step_ms_p50_low"].is_null());
  EXPECT_TRUE(steady["step_ms_p99"].is_null());
}

TEST(RunRecord, StatesHaveNames) {
  const Json status =
      Json::parse(to_document({.state = RunStatus::stopped, .message = "SIGTERM"}, "2026-01-02T03:04:05Z"));
  EXPECT_EQ(status["state"], "stopped");
  EXPECT_EQ(status["message"], "SIGTERM");
  EXPECT_TRUE(status["loss"].is_null());
  EXPECT_EQ(name(RunStatus::running), "running");
  EXPECT_EQ(name(RunStatus::failed), "failed");
}

}  // namespace
}  // namespace lockstep::training

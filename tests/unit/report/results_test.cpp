#include "report/results.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "core/error.hpp"
#include "result_text.hpp"

namespace lockstep::report {
namespace {

std::string complaint_about(const nlohmann::json& json) {
  try {
    static_cast<void>(parse_results(json.dump(), "r.json"));
  } catch (const core::Error& error) {
    EXPECT_EQ(error.code(), core::ExitCode::usage);
    return error.what();
  }
  return "";
}

TEST(Results, HoldTheVisitsOfEveryRow) {
  const Results results = parse_results(result_with({row_of("ring", 8, {1.5, 2}, {100, nullptr})}).dump(), "r.json");
  ASSERT_EQ(results.series.size(), 1u);
  const Series& series = results.series.front();
  EXPECT_EQ(series.subject, (Subject{"all_reduce", false, "float32", "sum", "ring", 8}));
  ASSERT_EQ(series.visits.size(), 2u);
  EXPECT_EQ(series.visits[0].time_us, 1.5);
  EXPECT_EQ(series.visits[0].core_round_trip_ns, 100);
  EXPECT_FALSE(series.visits[1].core_round_trip_ns);
  EXPECT_TRUE(parse_results(result_with({}).dump(), "r.json").series.empty());
}

TEST(Results, BadFilesAreErrorsThatNameFileAndKey) {
  const auto with = [](const char* pointer, nlohmann::json value) {
    nlohmann::json json = result_with({row_of("ring", 8, {1.5}, {100})});
    json[nlohmann::json::json_pointer{pointer}] = std::move(value);
    return json;
  };
  struct Case {
    const char* pointer;
    nlohmann::json value;
    const char* in_message;
  };
  for (const Case& bad :
       {Case{"/schema", "lockstep.train_run", "its schema is lockstep.train_run, version 1"},
        Case{"/schema_version", 2, "its schema is lockstep.reduce_all, version 2"}, Case{"/meta", 1, "meta is 1"},
        Case{"/meta/placement/0/node", -1, "meta.placement[0].node is -1"}, Case{"/visits", 1, "visits is 1"},
        Case{"/visits/0/time_us/0", "x", "visits[0].time_us[0] is 'x'"},
        Case{"/visits/0/time_us/0", 0, "visits[0].time_us[0] is 0\n  expected: a number from 1e-12 to 1e+12\n"},
        Case{"/visits/0/time_us/0", 1e13, "visits[0].time_us[0] is 10000000000000.0"},
        Case{"/visits/0/time_us", {1, 2}, "visits[0] has 2 times and 1 round trips"},
        Case{"/visits/0/core_round_trip_ns/0", -5, "visits[0].core_round_trip_ns[0] is -5"},
        Case{"/visits/0/bytes", -8, "visits[0].bytes is -8"}, Case{"/visits/0/in_place", 0, "visits[0].in_place is 0"},
        Case{"/visits/0/op", nullptr, "visits[0].op is null"}}) {
    const std::string message = complaint_about(with(bad.pointer, bad.value));
    EXPECT_NE(message.find(std::string{"r.json: "} + bad.in_message), std::string::npos) << bad.pointer << message;
  }
  nlohmann::json without_processor = result_with({});
  without_processor["meta"].erase("cpu_model");
  EXPECT_NE(complaint_about(without_processor).find("r.json: meta.cpu_model is missing"), std::string::npos);
  EXPECT_NE(complaint_about(nlohmann::json::array()).find("r.json: is a list"), std::string::npos);
}

TEST(Results, TheTableIsOneThatWasMeasured) {
  const auto with = [](std::uint64_t count, const char* dtype, nlohmann::json wrong) {
    nlohmann::json json = result_with({row_of("ring", 1024, {1.5}, {100})});
    json["results"].push_back({{"bytes", 1024}, {"count", count}, {"dtype", dtype}, {"wrong", std::move(wrong)}});
    return json;
  };
  EXPECT_EQ(parse_results(with(256, "float32", 5).dump(), "r.json").n_wrong, 5u);
  EXPECT_EQ(parse_results(with(128, "float64", nullptr).dump(), "r.json").n_wrong, 0u);
  const std::string count = complaint_about(with(255, "float32", 0));
  EXPECT_NE(count.find("r.json: results[0].count is 255"), std::string::npos) << count;
  EXPECT_NE(count.find("expected: 1024 bytes of float32"), std::string::npos) << count;
  const std::string dtype = complaint_about(with(256, "float33", 0));
  EXPECT_NE(dtype.find("r.json: results[0].dtype is 'float33'"), std::string::npos) << dtype;
}

TEST(Results, WhatIsNoJsonIsAnError) {
  for (const char* text : {"", "{", "{\"schema\": 1e999}", "\xff", "[[[["})
    EXPECT_THROW(static_cast<void>(parse_results(text, "r.json")), core::Error) << text;
}

TEST(Results, AFileWithoutVisitsIsRefused) {
  const std::string path = testing::TempDir() + "no_visits.json";
  std::ofstream{path} << result_with({row_of("ring", 8, {}, {})}).dump();
  try {
    static_cast<void>(read_results(path, "--baseline"));
    FAIL();
  } catch (const core::Error& error) {
    EXPECT_NE(std::string{error.what()}.find("has no visits"), std::string::npos) << error.what();
  }
  EXPECT_THROW(static_cast<void>(read_results(testing::TempDir() + "none.json", "--baseline")), core::Error);
}

TEST(Results, ARowIsThereOnceAndNothingIsNestedDeeply) {
  const nlohmann::json row = row_of("ring", 8, {1.5}, {100});
  EXPECT_NE(complaint_about(result_with({row, row})).find("visits[1] occurs twice"), std::string::npos);
  EXPECT_NE(complaint_about(result_with({row_of("ring", 8, {1e308}, {100})})).find("time_us[0]"), std::string::npos);
  std::string deep = result_with({row}).dump();
  deep.replace(deep.find("\"performance\""), 13, std::string(100'000, '[') + std::string(100'000, ']'));
  try {
    static_cast<void>(parse_results(deep, "r.json"));
    FAIL();
  } catch (const core::Error& error) {
    EXPECT_NE(std::string{error.what()}.find("r.json: is nested more than 16 deep"), std::string::npos) << error.what();
  }
}

TEST(Results, CompareOnlyOnTheSameMachineMeasuredAlike) {
  const nlohmann::json base = result_with({});
  const Results before = parse_results(base.dump(), "before.json");
  EXPECT_NO_THROW(require_comparable(before, before, "--now"));
  EXPECT_TRUE(name_changes(before, before).empty());
  for (const auto& [key, value] : {std::pair<const char*, nlohmann::json>{"ranks", 4},
                                   {"cpu_model", "another"},
                                   {"buffers", "cold"},
                                   {"device", {{"name", "a GPU"}, {"shared", false}, {"nccl_version", nullptr}}},
                                   {"simulated_nodes", 2},
                                   {"placement", {{{"node", 0}}, {{"node", 1}}}}}) {
    nlohmann::json other = base;
    other["meta"][key] = value;
    try {
      require_comparable(before, parse_results(other.dump(), "this run"), "--now");
      ADD_FAILURE() << key;
    } catch (const core::Error& error) {
      EXPECT_NE(std::string{error.what()}.find(key == std::string{"placement"} ? "ranks_per_node is 1, 1, not 2" : key),
                std::string::npos)
          << error.what();
      EXPECT_NE(std::string{error.what()}.find("--now"), std::string::npos) << error.what();
    }
  }
}

TEST(Results, FilesWithoutADeviceAreOfTheHost) {
  const nlohmann::json base = result_with({});
  nlohmann::json host = base, gpu = base, shared = base, newer = base;
  host["meta"]["device"] = nullptr;
  EXPECT_NO_THROW(
      require_comparable(parse_results(base.dump(), "before.json"), parse_results(host.dump(), "now"), "--now"));
  gpu["meta"]["device"] = {{"name", "a GPU"}, {"shared", false}, {"nccl_version", "2.28.9"}};
  newer["meta"]["device"] = {{"name", "a GPU"}, {"shared", false}, {"nccl_version", "2.30.1"}};
  shared["meta"]["device"] = {{"name", "a GPU"}, {"shared", true}, {"nccl_version", "2.28.9"}};
  const Results before = parse_results(gpu.dump(), "before.json");
  EXPECT_THROW(require_comparable(before, parse_results(shared.dump(), "now"), "--now"), core::Error);
  EXPECT_NO_THROW(require_comparable(before, parse_results(newer.dump(), "now"), "--now"));
  nlohmann::json registered = gpu, unregistered = gpu;
  registered["meta"]["device"]["register"] = "symmetric";
  unregistered["meta"]["device"]["register"] = "none";
  EXPECT_THROW(require_comparable(before, parse_results(registered.dump(), "now"), "--now"), core::Error);
  EXPECT_NO_THROW(require_comparable(before, parse_results(unregistered.dump(), "now"), "--now"));
  EXPECT_EQ(name_changes(before, parse_results(newer.dump(), "now")),
            std::vector<std::string>{"nccl_version: 2.28.9, now 2.30.1"});
}

TEST(Results, OfVariablesThatDifferTheNamesAreTold) {
  nlohmann::json base = result_with({}), other = base;
  base["meta"]["variables"] = {{"A", "1"}, {"B", "2"}};
  other["meta"]["variables"] = {{"A", "1"}, {"B", "3"}, {"C", "4"}};
  EXPECT_EQ(name_changes(parse_results(base.dump(), "b"), parse_results(other.dump(), "n")),
            std::vector<std::string>{"variables: B, C differ"});
}

TEST(Results, AnotherLibraryIsAChangeToBeTold) {
  nlohmann::json other = result_with({});
  other["meta"]["mpi_library"] = "Open MPI 5";
  const Results before = parse_results(result_with({}).dump(), "b"), now = parse_results(other.dump(), "n");
  EXPECT_NO_THROW(require_comparable(before, now, "--now"));
  EXPECT_EQ(name_changes(before, now), (std::vector<std::string>{"mpi_library: Open MPI 4, now Open MPI 5"}));
}

}  // namespace
}  // namespace lockstep::report

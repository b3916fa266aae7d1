#include "reduce_all/report.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "reduce_all/columns.hpp"
#include "unit/core/thrown.hpp"
#include "unit/io/temporary_folder.hpp"

namespace lockstep::reduce_all {
namespace {

Row sample_row() {
  Row row;
  row.bytes = 8;
  row.count = 2;
  row.dtype = "float32";
  row.op = "sum";
  row.algorithm = "ring";
  row.collective = "all_reduce";
  row.iterations = 20;
  row.wrong = 0;
  row.time_us_p50 = 1.25;
  row.time_us_p50_low = 1.0;
  row.time_us_p50_high = 1.5;
  row.time_us_min = 0.5;
  row.time_us_max = 4;
  row.time_us_mean = 1.5;
  row.algbw_GBps = 0.0064;
  row.busbw_GBps = 2.5;
  row.limit_GBps = 1;
  row.limit_percent = 0.64;
  row.limit_by = "cores";
  row.core_round_trip_ns_before = 118.25;
  row.core_round_trip_ns_after = 560;
  row.distance_changed = true;
  return row;
}

BenchmarkInfo sample_info(int n_ranks = 2) {
  BenchmarkInfo info;
  for (int rank = 0; rank < n_ranks; ++rank) {
    runtime::Place place;
    place.rank = rank;
    place.host = "node\xff";  // a host name need not be UTF-8
    place.cpus = {rank};
    info.topology.places.push_back(place);
  }
  info.topology.cores_per_node = {n_ranks};
  info.algorithms = {"mpi", "ring"};
  info.options.arguments = {"-b", "a \"quoted\" word"};
  info.limit = "what a copy reaches";
  return info;
}

std::size_t n_fields(const std::string& line) {
  return static_cast<std::size_t>(std::count(line.begin(), line.end(), ','));
}

TEST(JsonReport, IsValidWithNoneOneAndTwoRows) {
  const std::string row = json_row(sample_row());
  for (const std::string& rows : {std::string{}, row, row + ",\n" + row}) {
    const auto document = nlohmann::json::parse(json_document(json_meta(sample_info()), rows, false));
    EXPECT_EQ(document["schema"], "lockstep.reduce_all");
    EXPECT_EQ(document["schema_version"], 1);
    EXPECT_EQ(document["complete"], false);
    EXPECT_EQ(document["meta"]["arguments"][1], "a \"quoted\" word");
    EXPECT_EQ(document["meta"]["ranks"], 2);
    EXPECT_EQ(document["meta"]["placement"].size(), 2);
  }
}

TEST(JsonReport, RowsHaveAKeyForEachColumn) {
  const auto row = nlohmann::json::parse(json_row(sample_row()));
  for (const Column& column : columns()) EXPECT_TRUE(row.contains(column.name)) << column.name;
  EXPECT_EQ(row.size(), columns().size());
  EXPECT_EQ(row["core_round_trip_ns_before"], 118.25);
  EXPECT_EQ(row["distance_changed"], true);
  EXPECT_TRUE(nlohmann::json::parse(json_row(Row{}))["distance_changed"].is_null());
  EXPECT_EQ(row["time_us_p50"], 1.25);
  EXPECT_TRUE(row["time_us_p99"].is_null());
  Row with_samples = sample_row();
  with_samples.samples_us = {1, 2};
  EXPECT_EQ(nlohmann::json::parse(json_row(with_samples))["samples_us"].size(), 2u);
}

TEST(JsonReport, TheSchemaKnowsTheColumns) {
  const auto schema = nlohmann::json::parse(std::ifstream{LOCKSTEP_SCHEMAS "/reduce_all-1.schema.json"});
  const auto& row = schema["$defs"]["row"];
  std::set<std::string> names;
  for (const Column& column : columns()) names.emplace(column.name);
  for (const auto& key : row["required"]) EXPECT_TRUE(names.contains(key)) << key;
  names.insert("samples_us");
  for (const auto& [key, ignored] : row["properties"].items()) EXPECT_EQ(names.erase(key), 1U) << key;
  EXPECT_TRUE(names.empty()) << *names.begin();
}

// Programs rely on these names and places.
TEST(CsvReport, HeaderIsWhatProgramsRelyOn) {
  EXPECT_EQ(csv_header(),
            "bytes,count,dtype,op,algorithm,collective,in_place,iterations,time_us_p50,time_us_p50_low,"
            "time_us_p50_high,time_us_p99,time_us_min,time_us_max,time_us_mean,algbw_GBps,busbw_GBps,limit_GBps,"
            "limit_percent,slowest_rank,wrong,limit_by,core_round_trip_ns_before,core_round_trip_ns_after,"
            "distance_changed,chosen,device_time_us_p50\n");
}

TEST(CsvReport, RowsHaveAsManyFieldsAsTheHeader) {
  EXPECT_EQ(n_fields(csv_row(sample_row())), n_fields(csv_header()));
  EXPECT_EQ(n_fields(csv_row(Row{})), n_fields(csv_header()));
  EXPECT_EQ(
      csv_row(sample_row()),
      "8,2,float32,sum,ring,all_reduce,false,20,1.25,1,1.5,,0.5,4,1.5,0.0064,2.5,1,0.64,0,0,cores,118.25,560,true,,\n");
  Row of_auto = sample_row();
  of_auto.algorithm = "auto";
  of_auto.chosen = "shm";
  EXPECT_TRUE(csv_row(of_auto).ends_with(",true,shm,\n"));
  EXPECT_EQ(nlohmann::json::parse(json_row(of_auto))["chosen"], "shm");
}

TEST(TextReport, WarningsAndTheMeaningOfTheLimitComeBeforeNumbers) {
  BenchmarkInfo info = sample_info();
  info.warnings = {"something is doubtful"};
  const std::string header = text_header(info);
  EXPECT_NE(header.find("# WARNING: something is doubtful\n"), std::string::npos);
  EXPECT_NE(header.find("# %limit: what a copy reaches\n"), std::string::npos);
  EXPECT_NE(header.find("mpi, ring"), std::string::npos);
  EXPECT_EQ(header.find("one rank"), std::string::npos);
  std::istringstream lines{header};
  for (std::string line; std::getline(lines, line);) EXPECT_TRUE(line.starts_with('#')) << line;
}

TEST(TextReport, SaysWhatAutoRuns) {
  BenchmarkInfo info = sample_info();
  EXPECT_EQ(text_header(info).find("# auto"), std::string::npos);
  info.chosen = "ring";
  EXPECT_NE(text_header(info).find("# auto: the choice of lockstep train: ring\n"), std::string::npos);
}

TEST(TextReport, OneRankIsSaidToCommunicateNothing) {
  BenchmarkInfo info = sample_info(1);
  EXPECT_NE(text_header(info).find("there is no communication; algbw"), std::string::npos);
  info.options.in_place = true;
  EXPECT_NE(text_header(info).find("nothing to copy in place"), std::string::npos);
}

BenchmarkInfo info_of_gpus(int n_ranks) {
  BenchmarkInfo info = sample_info(n_ranks);
  info.device = {.number = 0, .driver = "13.1", .toolkit = "13.0"};
  info.device.gpu.name = "NVIDIA H200";
  info.device.gpu.uuid = "GPU-a";
  info.device.all = n_ranks == 1 ? std::vector<std::string>{"GPU-a"} : std::vector<std::string>{"GPU-a", "GPU-b"};
  info.nccl = "2.28.9";
  return info;
}

TEST(Reports, SayWhereTheVectorsAre) {
  BenchmarkInfo info = sample_info();
  EXPECT_EQ(text_header(info).find("# device"), std::string::npos);
  EXPECT_NE(text_header(info).find(" cores "), std::string::npos);
  EXPECT_TRUE(nlohmann::json::parse(json_meta(info))["device"].is_null());
  info.device.why_not = "there is none";
  EXPECT_NE(text_header(info).find("# device: host, because there is none\n"), std::string::npos);

  info = info_of_gpus(2);
  const std::string header = text_header(info);
  EXPECT_NE(
      header.find("# device: 2 GPUs, such as NVIDIA H200 (GPU-a), CUDA 13.0, driver for CUDA 13.1, NCCL 2.28.9\n"),
      std::string::npos)
      << header;
  EXPECT_NE(header.find(" GPU p50 "), std::string::npos);
  const auto device = nlohmann::json::parse(json_meta(info))["device"];
  EXPECT_EQ(device["uuids"], (std::vector<std::string>{"GPU-a", "GPU-b"}));
  EXPECT_EQ(device["nccl_version"], "2.28.9");
  EXPECT_EQ(device["register"], "none");
  info.registration = comm::Registration::local;
  EXPECT_NE(text_header(info).find(", NCCL 2.28.9; vectors are registered with NCCL (local)\n"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(json_meta(info))["device"]["register"], "local");
  info.nccl.clear();
  EXPECT_TRUE(nlohmann::json::parse(json_meta(info))["device"]["nccl_version"].is_null());

  Row row = sample_row();
  row.device_time_us_p50 = 47.25;
  EXPECT_NE(text_rows({&row, 1}).find(" 47.25"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(json_row(row))["device_time_us_p50"], 47.25);
}

TEST(TextReport, OneGpuIsSaidToCopy) {
  BenchmarkInfo info = info_of_gpus(1);
  EXPECT_NE(text_header(info).find("NCCL copies input to output"), std::string::npos);
  info.options.in_place = true;
  EXPECT_NE(text_header(info).find("do nothing in place"), std::string::npos);
}

TEST(TextReport, SaysWhereTheLibraryMayDifferInNaN) {
  const auto says = [](const BenchmarkInfo& info) {
    return text_header(info).find("# mpi: the library decides what") != std::string::npos;
  };
  BenchmarkInfo info = sample_info();
  EXPECT_FALSE(says(info));
  info.options.op = {comm::ReduceOp::sum, comm::ReduceOp::max};
  EXPECT_TRUE(says(info));
  info.options.dtype = {core::DType::float16, core::DType::int32};
  EXPECT_FALSE(says(info));
  info.options.dtype = {core::DType::float64};
  info.algorithms = {"ring"};
  EXPECT_FALSE(says(info));
}

TEST(TextReport, SaysHowFarApartTheCoresAreOrWhyNot) {
  BenchmarkInfo info = sample_info();
  EXPECT_EQ(text_header(info).find("# cores"), std::string::npos);
  info.why_no_cores = "not measured, because ranks share cores";
  EXPECT_NE(text_header(info).find("# cores: not measured, because ranks share cores\n"), std::string::npos);
  info.cores = CoreReach{{110, 110, 110}, {65536}, 49.06};
  EXPECT_NE(text_header(info).find("# cores: a cache line takes 55 ns between the ranks (round trip 110 ns); 64 KiB "
                                   "that another rank just wrote are read at 49.1 GB/s\n"),
            std::string::npos)
      << text_header(info);
}

TEST(Reports, SayHowFastTheHostIsReached) {
  BenchmarkInfo info = sample_info();
  info.device.number = 0;
  EXPECT_EQ(text_header(info).find("# host link"), std::string::npos);
  const auto device_of = [](const BenchmarkInfo& of) { return nlohmann::json::parse(json_meta(of))["device"]; };
  EXPECT_TRUE(device_of(info)["host_to_gpu_GBps"].is_null());
  EXPECT_TRUE(device_of(info)["gpu_to_host_GBps"].is_null());
  info.host_link = HostLink{54.94, 53.2, 3, 3};
  EXPECT_NE(text_header(info).find("\n# host link: 54.9 GB/s to the GPU, 53.2 back (slowest: rank 3)\n"),
            std::string::npos)
      << text_header(info);
  EXPECT_EQ(device_of(info)["host_to_gpu_GBps"], 54.94);
  EXPECT_EQ(device_of(info)["gpu_to_host_GBps"], 53.2);
  EXPECT_EQ(describe_host_link({1, 2, 0, 1}, 2), "1.0 GB/s to the GPU, 2.0 back (slowest: rank 0, back rank 1)");
  EXPECT_EQ(describe_host_link({1, 2, 0, 0}, 1), "1.0 GB/s to the GPU, 2.0 back");
}

TEST(TextReport, SaysWhatWasMeasuredAgainAndWhatIsDoubtful) {
  std::vector<Row> rows{sample_row()};
  EXPECT_NE(text_rows(rows).find(" 118>560"), std::string::npos) << text_rows(rows);
  Outcome repeated;
  repeated.n_repeated = 2;
  std::string closing = text_closing(rows, repeated);
  EXPECT_NE(closing.find("# cores moved: sizes were measured again 2 times\n"), std::string::npos) << closing;
  EXPECT_NE(closing.find("when these rows were repeated: 8 B\n"), std::string::npos) << closing;
  rows[0].distance_changed = false;
  closing = text_closing(rows, {});
  EXPECT_EQ(closing.find("# cores"), std::string::npos) << closing;
  rows.push_back(rows[0]);
  rows[1].bytes = 16;
  rows[1].core_round_trip_ns_before = 560;
  closing = text_closing(rows, {});
  EXPECT_NE(closing.find("compare algorithms only within one size: round trip of 8 B at 118 ns, 16 B at 560 ns\n"),
            std::string::npos)
      << closing;
}

// Thousands of ranks make a long file, which many short sizes would rewrite again and again.
TEST(Reports, SpendLittleTimeOnWriting) {
  Options options;
  options.json = testing::TempDir() + "spend_little.json";
  Report report{options};
  testing::internal::CaptureStdout();
  report.begin(sample_info(10'000));
  core::Stopwatch watch;
  report.end({}, false);
  const double once = watch.elapsed().value;
  watch = {};
  constexpr int n_sizes = 100;
  for (int i = 0; i < n_sizes; ++i) report.add({sample_row()});
  EXPECT_LT(watch.elapsed().value, n_sizes / 3 * once);
  report.end({}, false);
  testing::internal::GetCapturedStdout();
  const auto document = nlohmann::json::parse(std::ifstream{options.json});
  EXPECT_EQ(document["results"].size(), n_sizes);
  EXPECT_EQ(document["complete"], true);
}

TEST(Reports, SayHowAFileMayGrow) {
  const io::TemporaryFolder folder;
  Options options;
  options.json = folder / "r.json";
  Report report{options};
  testing::internal::CaptureStdout();
  report.begin(sample_info());
  testing::internal::GetCapturedStdout();
  const io::FullDisk limit{10};
  const auto error = core::thrown_by([&] { report.end({}, true); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), core::ExitCode::system);
  EXPECT_NE(error->problem().fix.find("ulimit -f unlimited; then measure again"), std::string::npos) << error->what();
}

TEST(TextReport, MarksTheBestOfSeveral) {
  std::vector<Row> rows{sample_row(), sample_row()};
  rows[1].time_us_p50 = 1;
  const std::string text = text_rows(rows);
  EXPECT_EQ(std::count(text.begin(), text.end(), '*'), 1);
  EXPECT_GT(text.find('*'), text.find('\n'));
  EXPECT_EQ(text_rows(std::span{rows}.first(1)).find('*'), std::string::npos);
  EXPECT_NE(text.find("[1.000, 1.500]"), std::string::npos);
  EXPECT_NE(text.find(" - "), std::string::npos) << "p99 is not supported";
}

TEST(TextReport, GivesNoRatesOfWhatMovesNothing) {
  std::vector<Row> rows{sample_row(), sample_row()};
  rows[0].time_us_p50 = 1;
  rows[0].busbw_GBps = 7.25;
  rows[0].moves_nothing = true;
  const std::string text = text_rows(rows);
  EXPECT_EQ(text.find("7.25"), std::string::npos) << text;
  EXPECT_NE(text.find(" 2.50 "), std::string::npos) << text;
  EXPECT_EQ(text.find('*'), std::string::npos) << "one that moves nothing is neither beaten nor a winner";
  EXPECT_NE(text_closing(rows, {}).find("# Avg bus bandwidth    : 2.5 \n"), std::string::npos);
  rows[1].moves_nothing = true;
  EXPECT_NE(text_closing(rows, {}).find("# Avg bus bandwidth    : none, because nothing moves\n"), std::string::npos);
}

TEST(Reports, SayWhatWasNotChecked) {
  Row row = sample_row();
  row.wrong.reset();
  EXPECT_TRUE(nlohmann::json::parse(json_row(row))["wrong"].is_null());
  EXPECT_NE(csv_row(row).find(",0.64,0,,cores,"), std::string::npos);
  EXPECT_NE(text_closing(std::vector{row}, {}).find("# not checked"), std::string::npos);
}

TEST(TextReport, ClosesAsNcclTestsDoes) {
  std::vector<Row> rows{sample_row(), sample_row()};
  for (Row& row : rows) row.distance_changed = false;
  rows[1].busbw_GBps = 1;
  EXPECT_EQ(text_closing(rows, {}), "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 1.75 \n");
  Outcome wrong;
  wrong.n_wrong = 3;
  EXPECT_NE(text_closing(rows, wrong).find("# Out of bounds values : 3 FAILED\n"), std::string::npos);
  EXPECT_EQ(text_closing({}, {}), "# Out of bounds values : not checked\n# Avg bus bandwidth    : 0 \n");
  EXPECT_TRUE(text_closing(rows, {.is_complete = false, .cut_short_by = "time is up"})
                  .starts_with("# not complete: time is up\n"));
}

TEST(TextReport, NamesAWrongElement) {
  const WrongElement wrong{.algorithm = "ring",
                           .call = {.n_elements = 16},
                           .rank = 3,
                           .host = "n01",
                           .mismatch = {2, 5, 0x3f800000, 0x40000000}};
  EXPECT_EQ(text_wrong(wrong),
            "# WRONG: all_reduce of 64 B float32, ring: rank 3 on n01, index 5: expected 1 (0x3f800000), found 2 "
            "(0x40000000); 2 wrong elements in the checked runs of this row\n");
}

}  // namespace
}  // namespace lockstep::reduce_all

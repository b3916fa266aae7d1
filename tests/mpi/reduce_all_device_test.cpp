// reduce_all with vectors in GPU memory: which GPUs the ranks get, which algorithms take part, that results are
// checked, and that files record where the vectors were. reduce_all_nccl_test.cpp tests the requirements of NCCL's
// rows.
#include <sched.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "comm/device_plan.hpp"
#include "support/on_made_up_gpus.hpp"
#include "support/reduce_all_program.hpp"

namespace lockstep::reduce_all {
namespace {

using support::Ended;
using support::expect_all;
using support::has;
using support::matches;
using support::Variables;
using support::world;

Ended run_line(const std::vector<std::string>& words, int /*n_ranks*/) {
  support::beat();
  unsetenv("NCCL_GRAPH_REGISTER");  // from the previous run
  return support::run_processes(world(), support::reduce_all_by_rank(words));
}

Ended ran(const std::string& line) { return expect_done(run_line, line); }

class OnDevice : public support::OnMadeUpGpus {};

const std::string brief = "-e 8 -n 4 -w 1 ";
const std::string on_host = brief + "--algorithm shm ";
const std::string few = "-b 8 -e 8K -f 32 -n 4 -w 1 --visits 1 --device cuda ";
const std::string right = "# Out of bounds values : 0 OK\n";
const Variables::Values no_gpu{{"LOCKSTEP_MADE_UP_GPUS", "0"}};

TEST_F(OnDevice, RanksThatShareAGpuStageTheirVectors) {
  const Ended ended = ran(few + "--share-gpu --json r.json --csv r.csv");
  expect_told(ended, 0,
              {"# device: made-up GPU (GPU-0", ", CUDA 13.0, driver for CUDA 13.0", "# all_reduce: staged", ", auto\n",
               "GPU p50", " staged ", "# host link: ", right});
  EXPECT_TRUE(matches(ended.out, "^# host link: [0-9.]+ GB/s to the GPU, [0-9.]+ back")) << ended.out;
  const auto document = nlohmann::json::parse(std::ifstream{"r.json"});
  const auto& device = document["meta"]["device"];
  EXPECT_GT(device["host_to_gpu_GBps"].get<double>(), 0);
  EXPECT_GT(device["gpu_to_host_GBps"].get<double>(), 0);
  for (const auto& row : document["results"]) {
    EXPECT_NE(row["limit_by"].dump(), R"("links")") << "a limit by links that are not there";
    EXPECT_TRUE(row["device_time_us_p50"].is_number());
  }
  std::string header;
  std::getline(std::ifstream{"r.csv"}, header);
  EXPECT_TRUE(header.ends_with(",device_time_us_p50")) << header;
  EXPECT_EQ(has(ended.out, ", shared by ranks,"), world().n_ranks() > 1);
  EXPECT_EQ(device["shared"].get<bool>(), world().n_ranks() > 1);
  EXPECT_FALSE(world().n_ranks() > 1 && has(ended.out, " nccl ")) << "NCCL serves ranks that share a GPU";
  expect_refused(run_line, {brief + "--device host --baseline r.json",
                            {world().n_ranks() == 1 ? "device is host, not made-up GPU"
                                                    : "device is host, not made-up GPU, shared by ranks"},
                            world().n_ranks()});
}

// Every collective, type and operation, also in place, with all preparations of buffers.
TEST_F(OnDevice, EveryWayToMeasureEndsWithRightResults) {
  const std::string staged = "--share-gpu --device cuda --algorithm staged ";
  for (const std::string words : {"--collective reduce_scatter --buffers dirty", "--collective all_gather --in-place",
                                  "--buffers cold --sync none -d bfloat16 -o max", "-d int8 -o avg -w 0 --in-place"})
    expect_all(run_line, {{{3}, "-e 4K -f 64 -n 4 -w 1 " + staged + words, {right}}});
  expect_all(run_line, {{{2}, "-b 1K -e 1K -n 2 -w 1 -d all -o all " + staged, {right}}});
}

// In periods of data, and where parts begin between multiples of 16 bytes.
TEST_F(OnDevice, FindsAWrongElement) {
  if (world().n_ranks() != 3) return;
  const std::pair<std::string, std::string> table[] = {
      {"7", "-b 4K -e 4K"},
      {"299000", "-b 300K -e 300K -d int8 --in-place"},
      {"22000", "-b 130K -e 130K -d float16 -o prod --collective reduce_scatter --in-place"},
      {"65000", "-b 130K -e 130K -d int16 --collective all_gather"}};
  for (const auto& [index, words] : table) {
    const std::string line = words + " -n 10 --share-gpu --device cuda --algorithm staged --inject wrong:1:" + index;
    const Ended ended = run_line(support::words_of(line), 3);
    expect_told(ended, 1, {"# Out of bounds values : 1 FAILED\n"});
    EXPECT_TRUE(matches(ended.out, "^# WRONG: .* rank 1 on [^,]+, index " + index + ": expected .*, found "))
        << ended.out;
  }
}

// There are no rates, and no row is the fastest.
TEST_F(OnDevice, OneRankInPlaceMovesNothing) {
  if (world().n_ranks() != 1) return;
  const std::string in_place = "-b 4K -e 8K -n 8 --in-place --device cuda ";
  const Ended ended = ran(in_place);
  EXPECT_TRUE(matches(ended.out, " staged .* [0-9.]+ +[0-9.]+ +[0-9.]+ +0 +8 .*[0-9]$")) << ended.out;
  EXPECT_FALSE(has(ended.out, "*\n")) << ended.out;
  if (comm::nccl_version().empty()) return;
  for (const std::string row : {"nccl", "auto"})
    EXPECT_TRUE(matches(ended.out, " " + row + " .* - +- +- +0 +8 ")) << ended.out;
  expect_told(ran(in_place + "--algorithm nccl"), 0, {"# Avg bus bandwidth    : none, because nothing moves\n"});
}

TEST_F(OnDevice, NoTwoRanksGetOneGpuUnasked) {
  expect_all(run_line,
             {{{2}, brief + "--device cuda", {"ranks 0 and 1 share one GPU, GPU-0", "fix: ", "--share-gpu"}, {}, 2},
              {{2}, on_host, {"# device: host, because ranks 0 and 1 share one GPU, GPU-0", " shm "}}});
}

class Bound {
 public:
  explicit Bound(int processor) {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(processor, &only);
    sched_setaffinity(0, sizeof only, &only);
  }
  ~Bound() { sched_setaffinity(0, sizeof before_, &before_); }
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;

 private:
  cpu_set_t before_{};
};

std::vector<int> allowed_processors() {
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof allowed, &allowed);
  std::vector<int> all;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &allowed)) all.push_back(i);
  return all;
}

TEST_F(OnDevice, BoundRanksTakeTheGpusNearThem) {
  if (world().n_ranks() != 2) return;
  const std::vector<int> processors = allowed_processors();
  if (processors.size() < 2) GTEST_SKIP() << "one processor";
  const Variables two{
      {{"LOCKSTEP_MADE_UP_GPUS", "2"},
       {"LOCKSTEP_MADE_UP_GPU_PROCESSORS", std::to_string(processors[1]) + ";" + std::to_string(processors[0])}}};
  const std::string line = brief + "--algorithm staged --json near.json";
  {
    const Bound bound{processors[static_cast<std::size_t>(world().rank())]};
    const Ended ended = ran(line);
    EXPECT_FALSE(has(ended.out, "far from their GPU")) << ended.out;
  }
  const auto uuids = nlohmann::json::parse(std::ifstream{"near.json"})["meta"]["device"]["uuids"];
  EXPECT_TRUE(uuids[0].get<std::string>().ends_with("-000000000001")) << uuids.dump();
  EXPECT_TRUE(uuids[1].get<std::string>().ends_with("-000000000000")) << uuids.dump();
  const Bound bound{processors[0]};
  expect_told(ran(line), 0, {"WARNING: 1 of 2 ranks runs on processors far from their GPU, such as rank 1 on "});
}

TEST_F(OnDevice, WhatDoesNotFitIsRefusedBeforeAnythingIsMeasured) {
  const Variables::Values two{{"LOCKSTEP_MADE_UP_GPUS", "2"}};
  const auto bytes = [](const std::string& n) { return Variables::Values{{"LOCKSTEP_MADE_UP_GPU_BYTES", n}}; };
  expect_all(run_line,
             {
                 {{2}, "-e 512M --device cuda --share-gpu -n 8", {"has 1 GiB for 2 ranks"}, {}, 2},
                 // Vectors that pass through the host need memory there; others do not.
                 {{1},
                  "-b 64T -e 64T --device cuda -n 8",
                  {"vectors of 64 TiB need more memory than the", "expected: room for about 3 vectors per rank"},
                  bytes("1125899906842624"),
                  2},
                 {{1}, "-b 1M --device cuda -n 8", {"fix: use -b and -e 32K or less"}, bytes("100000"), 2},
                 {{1}, "--device cuda -n 8", {"fix: --device host\n"}, bytes("100"), 2},
             });
  if (!comm::nccl_version().empty())
    expect_all(run_line,
               {{{2},
                 "-e 2G --device cuda -n 8",
                 {"vectors of 2 GiB need 4225 MiB of GPU GPU-0", ", which has 1 GiB", "fix: use -e 447M or less"},
                 two,
                 2}});
}

// Even if that is very little.
TEST_F(OnDevice, WhatFitsIsNamedAndDoesFit) {
  if (world().n_ranks() != 1) return;
  for (const char* const bytes : {"3000000", "100000", "1000"}) {
    SCOPED_TRACE(bytes);
    const Variables variables{{{"LOCKSTEP_MADE_UP_GPU_BYTES", bytes}}};
    const Ended ended = run_line(support::words_of("-e 64M --device cuda -n 8"), 1);
    expect_told(ended, 2, {});
    std::smatch fix;
    ASSERT_TRUE(
        std::regex_search(ended.err, fix, std::regex{"fix: use -e ([1-9][0-9]*[MK]*) or less, or --device host"}))
        << ended.err;
    ran("-b " + fix[1].str() + " -e " + fix[1].str() + " --device cuda -n 8 --algorithm staged");
  }
}

TEST_F(OnDevice, WithoutAGpuTheHostIsTakenAndToldOfUnlessRefused) {
  const auto no_effect = [](const std::string& flag) {
    return "warning: " + flag + " has no effect: the vectors are in host memory\n";
  };
  expect_all(
      run_line,
      {
          {{1, 3},
           brief + "--device cuda",
           {"shows no GPU to this process", "expected: an NVIDIA GPU for every rank"},
           no_gpu,
           2},
          {{1}, "--device gpu", {"did you mean 'cuda'"}, no_gpu, 2},
          {{1}, "--device host --share-gpu", {"ranks share only GPUs"}, no_gpu, 2},
          {{1}, "--demo --device cuda", {"the demo is one fixed sum"}, no_gpu, 2},
          {{2},
           brief + "--algorithm staged",
           {"staged works only on the memory of GPUs", "fix: use --device cuda"},
           no_gpu,
           2},
          {{2}, brief + "--register local --device host", {"only memory of GPUs is registered with NCCL"}, no_gpu, 2},
          {{2}, brief + "--graph --device host", {"only calls on GPUs are recorded in a graph"}, no_gpu, 2},
          {{2}, on_host, {"# device: host, because ", "shows no GPU", " shm "}, no_gpu, 0, {"share-gpu", "--graph"}},
          {{2}, on_host + "--device host", {" shm "}, no_gpu, 0, {"# device"}},
          {{2}, on_host + "--graph", {no_effect("--graph")}, no_gpu},
          {{2}, on_host + "--register local", {no_effect("--register")}, no_gpu},
      });
  if (world().n_ranks() != 2) return;
  const Variables variables{no_gpu};
  const Ended ended = ran(on_host + "--share-gpu");
  const std::size_t first = ended.err.find(no_effect("--share-gpu"));
  EXPECT_NE(first, std::string::npos) << ended.err;
  EXPECT_EQ(ended.err.find("--share-gpu", first + 20), std::string::npos) << "told twice";
}

TEST_F(OnDevice, AlgorithmsOfTheHostAreRefused) {
  expect_all(run_line, {{{2},
                         brief + "--share-gpu --device cuda --algorithm ring",
                         {"ring works only on the memory of the host", "fix: use --device host, or leave it out"},
                         {},
                         2}});
}

}  // namespace
}  // namespace lockstep::reduce_all

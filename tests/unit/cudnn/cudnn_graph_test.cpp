// cuDNN is asked, without a GPU, whether it computes every product of the shipped models on the GPUs of the sites.
#include "nn/cuda/cudnn_graph.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <tuple>

#include "support/plain_convolutions.hpp"
#include "support/recipe_models.hpp"
#include "support/recorder.hpp"
#include "unit/io/temporary_folder.hpp"

namespace lockstep::nn::cuda {
namespace {

struct Card {
  const char* name;
  int architecture;
  int n_multiprocessors;
  int shared_bytes;
  std::uint64_t memory_gib;
  std::uint64_t cache_bytes;
};

constexpr Card cards[]{{"NVIDIA A100-SXM4-80GB", 80, 108, 166912, 80, 41943040},
                       {"NVIDIA H200", 90, 132, 232448, 141, 62914560},
                       {"NVIDIA B200", 100, 148, 232448, 180, 132644864},
                       {"NVIDIA RTX PRO 6000", 120, 188, 101376, 96, 134217728}};

// What cuDNN wants to know of a GPU; the limits that all of these share are of the CUDA C++ Programming Guide.
std::string describe(const Card& card) {
  return fmt::format(
      R"({{"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"regsPerBlock":65536,)"
      R"("multiProcessorCount":{},"warpSize":32,"maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":{},)"
      R"("reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,"maxCtasPerSM":32,"maxThreadsPerBlock":1024,)"
      R"("maxThreadsPerSM":2048,"pciDeviceId":0,"isTccDriver":0,"supportCoopLaunch":1,"totalGlobalMem":{},)"
      R"("smClockRateKHz":1980000,"memClockRateKHz":3201000,"l2CacheSize":{},"cudaDeviceId":0,"deviceVer":{},)"
      R"("driverVer":13000,"deviceName":"{}"}})",
      card.n_multiprocessors, card.shared_bytes, card.memory_gib << 30, card.cache_bytes, 10 * card.architecture,
      card.name);
}

class CudnnPlans : public ::testing::TestWithParam<std::tuple<std::size_t, core::DType>> {};

TEST_P(CudnnPlans, AreThereForEveryProduct) {
  const auto& [number, type] = GetParam();
  const Card& card = cards[number];
  const GpuModel gpu{describe(card), card.architecture};
  for (const test::RecipeModel& model : test::recipe_models()) {
    const Network network = make_model(model.spec);
    const std::vector<ValueLayout> layouts = layouts_of(network);
    std::set<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t>> seen;
    for (std::size_t i = 0; i < network.nodes().size(); ++i) {
      const std::optional<ConvProblem> p = problem_of(network, i, layouts, model.batch);
      if (!p || !seen.insert({p->height, p->n_in, p->n_out, p->kernel, p->stride}).second) continue;
      for (const ConvPass pass : {ConvPass::forward, ConvPass::input_gradient, ConvPass::weight_gradient}) {
        const std::vector<ConvPlan> plans = find_plans(*p, pass, type, gpu, {});
        ASSERT_FALSE(plans.empty()) << model.recipe << ' ' << p->name << " pass " << static_cast<int>(pass);
        EXPECT_LE(plans[0].workspace, most_workspace);
      }
    }
  }
}

std::string name_of(const ::testing::TestParamInfo<CudnnPlans::ParamType>& info) {
  return fmt::format("sm{}_{}", cards[std::get<0>(info.param)].architecture, core::name(std::get<1>(info.param)));
}

INSTANTIATE_TEST_SUITE_P(Cards, CudnnPlans,
                         ::testing::Combine(::testing::Range(std::size_t{0}, std::size(cards)),
                                            ::testing::Values(core::DType::float16, core::DType::bfloat16,
                                                              core::DType::float32)),
                         name_of);

TEST(CudnnGraph, IsRefusedInCudnnsWords) { EXPECT_ANY_THROW(GpuModel("{}", 90)); }

// The search bites: without workspace there is nothing for a convolution whose plans all need some.
TEST(CudnnGraph, HasNoPlanBeyondItsWorkspace) {
  const GpuModel gpu{describe(cards[1]), 90};
  const ConvProblem stem{.name = "conv1",
                         .n_samples = 256,
                         .height = 64,
                         .width = 64,
                         .n_in = 4,
                         .n_out = 64,
                         .kernel = 7,
                         .stride = 2,
                         .padding = 3};
  const PlanFilter filter{.most_workspace = core::Bytes{0}, .most = 100};
  for (const ConvPlan& plan : find_plans(stem, ConvPass::forward, core::DType::bfloat16, gpu, filter))
    EXPECT_EQ(plan.workspace, core::Bytes{0});
}

constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();

ConvProblem small_problem() {
  return {.name = "conv1",
          .n_samples = 2,
          .height = 9,
          .width = 9,
          .n_in = 8,
          .n_out = 16,
          .kernel = 3,
          .stride = 2,
          .padding = 1};
}

// Engines that the heuristics say nothing of are looked at too, and few of those that take long to be made.
TEST(CudnnGraph, SearchesAllEngines) {
  const GpuModel gpu{describe(cards[1]), 90};
  const auto plans = [&](const PlanFilter& filter) {
    const ConvProblem p{.name = "conv",
                        .n_samples = 256,
                        .height = 28,
                        .width = 28,
                        .n_in = 128,
                        .n_out = 128,
                        .kernel = 3,
                        .padding = 1};
    return find_plans(p, ConvPass::forward, core::DType::bfloat16, gpu, filter);
  };
  const auto engines = [](const std::vector<ConvPlan>& of) {
    std::set<std::string> names;
    for (const ConvPlan& plan : of) names.insert(plan.name.substr(0, plan.name.find('_')));
    return names;
  };
  const auto offered = plans({.most = no_limit, .most_compiled = 0});
  const auto all = plans({.most = no_limit, .most_compiled = 2, .has_all_engines = true});
  EXPECT_GT(engines(all).size(), engines(offered).size());
  EXPECT_LE(std::ranges::count_if(all, &ConvPlan::is_compiled_at_run_time), 2);
  for (const ConvPlan& plan : all) EXPECT_LE(plan.workspace, most_workspace) << plan.name;
  EXPECT_EQ(plans({.most = 3}).size(), 3U);
}

// A plan that was kept is made of its bytes again, and anything else that is found there does no harm.
TEST(CudnnConvolutions, KeepPlansFromRunToRun) {
  test::Recorder recorder;
  const test::UseRecorder use{recorder};
  const io::TemporaryFolder folder;
  const PlanChoice rules{.folder = folder.path()};
  const ConvProblem p = small_problem();
  int n_agreed = 0;
  const auto workspace = [&](bool is_deterministic) {
    ExecutorOptions options{.is_deterministic = is_deterministic};
    options.agree = [&](std::span<double>) { ++n_agreed; };
    CudnnConvolutions cudnn{GpuModel{describe(cards[1]), 90}, rules};
    const std::vector<Product> twice(2, {p, ConvPass::forward});
    for (int i = 0; i < 2; ++i) cudnn.choose(twice, core::DType::bfloat16, options);
    return cudnn.plan(p, ConvPass::forward, core::DType::bfloat16)->workspace_bytes();
  };
  const auto n_files = [&] { return std::distance(std::filesystem::directory_iterator{folder.path()}, {}); };
  const std::size_t wanted = workspace(true);
  EXPECT_EQ(n_agreed, 0);
  EXPECT_EQ(n_files(), 0);
  EXPECT_EQ(workspace(false), wanted);
  EXPECT_EQ(n_agreed, 1);
  ASSERT_EQ(n_files(), 1);
  const auto file = std::filesystem::directory_iterator { folder.path() } -> path();
  EXPECT_GT(std::filesystem::file_size(file), 500U);
  const auto written = std::filesystem::last_write_time(file);
  EXPECT_EQ(workspace(false), wanted);
  EXPECT_EQ(n_agreed, 2);
  EXPECT_EQ(std::filesystem::last_write_time(file), written) << "it is known, so nothing is new";
}

// However many threads ask: as many handles, one order.
TEST(CudnnConvolutions, ChooseTheSameOnAnyNumberOfThreads) {
  test::Recorder recorder;
  const test::UseRecorder use{recorder};
  std::vector<Product> products;
  for (const std::uint64_t n_out : {8, 16, 24}) {
    products.push_back({small_problem(), ConvPass::forward});
    products.back().problem.n_out = n_out;
  }
  const auto choices = [&](int n_threads) {
    const io::TemporaryFolder folder;
    ExecutorOptions options;
    std::vector<double> agreed;
    options.agree = [&](std::span<double> told) { agreed.insert(agreed.end(), told.begin(), told.end()); };
    CudnnConvolutions cudnn{GpuModel{describe(cards[1]), 90}, {.folder = folder.path(), .n_threads = n_threads}};
    cudnn.choose(products, core::DType::bfloat16, options);
    const auto file = std::filesystem::directory_iterator { folder.path() } -> path();
    return std::pair{agreed, std::filesystem::file_size(file)};
  };
  const auto expected = choices(1);
  EXPECT_EQ(expected.first.size(), 2 * products.size());
  EXPECT_EQ(choices(3), expected);
}

// What is enqueued for cuDNN touches the memory that it does with plain loops.
TEST(CudnnConvolutions, TouchWhatPlainOnesDo) {
  test::Recorder recorder;
  const test::UseRecorder use{recorder};
  const ConvProblem p = small_problem();
  const runtime::Buffer x{core::Bytes{2 * 9 * 9 * 8 * 2}, runtime::Memory::device};
  const runtime::Buffer w{core::Bytes{16 * 3 * 3 * 8 * 2}, runtime::Memory::device};
  const runtime::Buffer y{core::Bytes{2 * 5 * 5 * 16 * 2}, runtime::Memory::device};
  const runtime::Buffer workspace{most_workspace, runtime::Memory::device};
  const auto of = [](const runtime::Buffer& buffer) { return buffer.on_device<std::byte>().data(); };
  const ConvOperands operands{of(x), of(w), of(y), of(workspace)};
  CudnnConvolutions cudnn{GpuModel{describe(cards[1]), 90}};
  test::PlainConvolutions plain;
  // Name and places, without what differs: grid, body, and the workspace.
  runtime::Stream stream;
  const auto places = [&](Convolutions& by, ConvPass pass) {
    by.plan(p, pass, core::DType::bfloat16)->enqueue(stream, operands);
    std::string line = recorder.take_lines().front();
    const std::size_t name = line.find(' '), first = line.find('<');
    line = line.substr(name, line.find(' ', name + 1) - name) + line.substr(first);
    return line.substr(0, line.find(" >3["));
  };
  for (const ConvPass pass : {ConvPass::forward, ConvPass::input_gradient, ConvPass::weight_gradient})
    EXPECT_EQ(places(cudnn, pass), places(plain, pass));
  for (const std::string& complaint : recorder.complaints()) ADD_FAILURE() << complaint;
}

}  // namespace
}  // namespace lockstep::nn::cuda

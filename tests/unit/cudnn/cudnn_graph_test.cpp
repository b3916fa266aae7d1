// Asks cuDNN, without a GPU, whether it supports every product of the shipped models on the GPUs of the sites.
#include "nn/cuda/cudnn_graph.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "core/fnv.hpp"
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

// The facts about a GPU that cuDNN needs; limits that all of these share are from the CUDA C++ Programming Guide.
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
    std::set<std::string> seen;
    for (const Product& product : products_of(make_model(model.spec), model.batch)) {
      for (const Epilogue epilogue : {Epilogue::none, product.epilogue}) {
        const Product asked{product.problem, product.pass, epilogue};
        const std::string words = fmt::format("{} {}", name(asked), describe(asked.problem));
        if (!seen.insert(words).second || (epilogue != Epilogue::none && !may_fuse(asked, type))) continue;
        // Plans that compile at run time are only offered here, and built on a GPU.
        const bool builds = epilogue != Epilogue::relu_backward && epilogue != Epilogue::kept;
        const std::vector<ConvPlan> plans = find_plans(asked, type, gpu, {.prefers_ready = true, .builds = builds});
        ASSERT_FALSE(plans.empty()) << model.recipe << ' ' << words;
        EXPECT_LE(plans[0].workspace, most_workspace);
      }
    }
  }
}

std::string name_of(const ::testing::TestParamInfo<CudnnPlans::ParamType>& info) {
  return fmt::format("sm{}_{}", cards[std::get<0>(info.param)].architecture, core::name(std::get<1>(info.param)));
}

const auto multiplied_types = ::testing::Values(core::DType::float16, core::DType::bfloat16, core::DType::float32);
INSTANTIATE_TEST_SUITE_P(Cards, CudnnPlans, ::testing::Combine(::testing::Values(1), multiplied_types), name_of);
INSTANTIATE_TEST_SUITE_P(DISABLED_Cards, CudnnPlans, ::testing::Combine(::testing::Values(0, 2, 3), multiplied_types),
                         name_of);

TEST(CudnnGraph, IsRefusedInCudnnsWords) { EXPECT_ANY_THROW(GpuModel("{}", 90)); }

// The search is effective: without workspace there is no plan for a convolution whose plans all need some.
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
  for (const ConvPlan& plan : find_plans({stem}, core::DType::bfloat16, gpu, filter))
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

// The search includes engines that the heuristics do not list, and few of those that take long to make.
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
    return find_plans({p}, core::DType::bfloat16, gpu, filter);
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

// A stored plan is restored from its bytes, and other content does no harm.
TEST(CudnnConvolutions, KeepPlansFromRunToRun) {
  test::Recorder recorder;
  const test::UseRecorder use{recorder};
  const io::TemporaryFolder folder;
  const PlanChoice rules{.folder = folder.path()};
  const ConvProblem p = small_problem();
  int n_agreed = 0;
  const auto workspace = [&](bool is_deterministic, std::size_t card = 1) {
    ExecutorOptions options{.is_deterministic = is_deterministic};
    options.agree = [&](std::span<double>) { ++n_agreed; };
    CudnnConvolutions cudnn{GpuModel{describe(cards[card]), cards[card].architecture}, rules};
    const std::vector<Product> twice(2, {p, ConvPass::forward});
    for (int i = 0; i < 2; ++i) cudnn.choose(twice, core::DType::bfloat16, options);
    return cudnn.plan({p}, core::DType::bfloat16)->workspace_bytes();
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
  static_cast<void>(workspace(false, 0));
  EXPECT_EQ(n_files(), 2) << "another GPU has its own";
  EXPECT_EQ(std::filesystem::last_write_time(file), written);
}

constexpr double unlimited = std::numeric_limits<double>::infinity();

// A rank that had no time to compile chooses among the plans of ranks that had.
TEST(CudnnPlans, AreAmongThoseWithCompiledOnes) {
  const GpuModel gpu{describe(cards[1]), 90};
  std::size_t n_compiled = 0;
  for (const ConvPass pass : {ConvPass::forward, ConvPass::input_gradient, ConvPass::weight_gradient}) {
    PlanFilter filter{.is_deterministic = false, .most = 8, .has_all_engines = true, .builds = false};
    const Product product{small_problem(), pass};
    std::set<std::string> all;
    for (const ConvPlan& plan : find_plans(product, core::DType::float16, gpu, filter)) {
      all.insert(plan.name);
      n_compiled += plan.is_compiled_at_run_time ? 1 : 0;
    }
    filter.most_compiled = 0;
    for (const ConvPlan& plan : find_plans(product, core::DType::float16, gpu, filter))
      EXPECT_TRUE(all.contains(plan.name)) << plan.name;
  }
  EXPECT_GT(n_compiled, 0U);
}

// For any number of threads: as many handles, one order. With two threads, one is at most eight plans ahead, and waits
// for the other twice.
TEST(CudnnConvolutions, ChooseTheSameOnAnyNumberOfThreads) {
  test::Recorder recorder;
  const test::UseRecorder use{recorder};
  const auto choices = [&](int n_threads, std::size_t n_products, double compiling_s) {
    std::vector<Product> products;
    for (std::size_t i = 1; i <= n_products; ++i) {
      products.push_back({small_problem(), ConvPass::forward});
      products.back().problem.n_out = 8 * i;
    }
    const io::TemporaryFolder folder;
    ExecutorOptions options;
    std::vector<double> agreed;
    options.agree = [&](std::span<double> told) { agreed.insert(agreed.end(), told.begin(), told.end()); };
    CudnnConvolutions cudnn{GpuModel{describe(cards[1]), 90},
                            {.folder = folder.path(), .n_threads = n_threads, .compiling_s = compiling_s}};
    cudnn.choose(products, core::DType::bfloat16, options);
    EXPECT_EQ(agreed.size(), 2 * n_products);
    const auto file = std::filesystem::directory_iterator { folder.path() } -> path();
    return std::pair{agreed, std::filesystem::file_size(file)};
  };
  EXPECT_EQ(choices(3, 3, unlimited), choices(1, 3, unlimited));
  EXPECT_EQ(choices(2, 24, 0), choices(1, 24, 0));
}

// Chooses again, among more plans.
TEST(CudnnConvolutions, DISABLED_TuneEveryTime) {
  test::Recorder recorder;
  const test::UseRecorder use{recorder};
  const Product product{small_problem(), ConvPass::input_gradient};
  const io::TemporaryFolder folder;
  const auto told_in = [&](bool is_exhaustive, double instead) {
    ExecutorOptions options;
    std::vector<double> told;
    options.agree = [&](std::span<double> mine) {
      told.push_back(mine[0]);
      if (instead >= 0) mine[0] = instead;
    };
    CudnnConvolutions cudnn{GpuModel{describe(cards[1]), 90},
                            {.folder = folder.path(), .is_exhaustive = is_exhaustive, .compiling_s = unlimited}};
    cudnn.choose({&product, 1}, core::DType::bfloat16, options);
    return told;
  };
  const std::vector<ConvPlan> plans =
      find_plans(product, core::DType::bfloat16, GpuModel{describe(cards[1]), 90},
                 {.is_deterministic = false, .most = 1000, .most_compiled = 1000, .has_all_engines = true});
  ASSERT_GT(plans.size(), 8U);
  const double first = told_in(false, -1).at(0), last = static_cast<double>(core::fnv1a(plans.back().name) >> 12);
  EXPECT_NE(first, last);
  EXPECT_THROW(static_cast<void>(told_in(true, 1)), core::Error) << "there is no such plan";
  static_cast<void>(told_in(true, last));
  EXPECT_EQ(told_in(false, -1).at(0), last) << "what was tuned is kept";
  EXPECT_EQ(told_in(true, -1).at(0), first);
}

// An epilogue is part of its product if that is chosen, else a separate operation; without a choice it is separate.
TEST(CudnnConvolutions, FuseWhatWasChosen) {
  test::Recorder recorder;
  const test::UseRecorder use{recorder};
  const Product product{small_problem(), ConvPass::forward, Epilogue::bias_relu};
  const runtime::Buffer memory{core::Bytes{1 << 20}, runtime::Memory::device};
  runtime::Stream stream;
  std::byte* const at = memory.on_device<std::byte>().data();
  const auto operations = [&](const std::function<void(std::span<double>)>& agree) {
    const io::TemporaryFolder folder;
    std::vector<std::string> names;
    for (int run = 0; run < 2; ++run) {  // the second run finds what the first has stored
      ExecutorOptions options;
      options.agree = agree;
      CudnnConvolutions cudnn{GpuModel{describe(cards[1]), 90}, {.folder = folder.path(), .compiling_s = unlimited}};
      cudnn.choose({&product, 1}, core::DType::bfloat16, options);
      const auto convolution = cudnn.plan(product, core::DType::bfloat16);
      convolution->enqueue(stream, {.x = at,
                                    .w = at + (1 << 16),
                                    .y = at + (2 << 16),
                                    .workspace = at + (3 << 16),
                                    .bias = reinterpret_cast<const float*>(at + (4 << 16)),
                                    .rounded_bias = at + (5 << 16)});
      for (const std::string& line : recorder.take_lines()) {
        const std::size_t name = line.find(' ') + 1;
        names.push_back(line.substr(name, line.find(' ', name) - name));
      }
    }
    return names;
  };
  const std::vector<std::string> split{"conv", "add_bias", "conv", "add_bias"};
  EXPECT_EQ(operations([](std::span<double>) {}), (std::vector<std::string>{"conv_bias_relu", "conv_bias_relu"}));
  EXPECT_EQ(operations({}), split);
  int n_asked = 0;
  EXPECT_EQ(operations([&](std::span<double> told) {
              if (n_asked++ % 2 == 1) told[0] = static_cast<double>(core::fnv1a("split") >> 12);  // rank 0's choice
            }),
            split);
  for (const std::string& complaint : recorder.complaints()) ADD_FAILURE() << complaint;
}

// Every plan that was tried, and where it comes from; known choices are not timed again.
TEST(CudnnConvolutions, TellWhatTheyTimed) {
  test::Recorder recorder;
  const test::UseRecorder use{recorder};
  const Product product{small_problem(), ConvPass::forward, Epilogue::bias_relu};
  const io::TemporaryFolder folder;
  ExecutorOptions options;
  options.agree = [](std::span<double>) {};
  std::vector<std::pair<Epilogue, std::vector<TimedPlan>>> told;
  for (int run = 0; run < 2; ++run) {
    CudnnConvolutions cudnn{
        GpuModel{describe(cards[1]), 90},
        {.folder = folder.path(), .on_timed = [&](const Product& of, std::span<const TimedPlan> plans) {
           told.push_back({of.epilogue, {plans.begin(), plans.end()}});
         }}};
    cudnn.choose({&product, 1}, core::DType::bfloat16, options);
  }
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0].first, Epilogue::none);
  EXPECT_EQ(told[1].first, Epilogue::bias_relu);
  const auto& [plain, fused] = std::tie(told[0].second, told[1].second);
  EXPECT_EQ(fused.back().plan.name, split_name);
  EXPECT_NE(plain.back().plan.name, split_name);
  const auto is_listed = [](const TimedPlan& timed) { return timed.plan.is_listed; };
  EXPECT_TRUE(is_listed(plain.front()));
  EXPECT_TRUE(std::ranges::is_partitioned(plain, is_listed)) << "what heuristics list comes first";
  EXPECT_FALSE(std::ranges::all_of(plain, is_listed)) << "Hopper has an engine that they hide";
  EXPECT_TRUE(std::ranges::is_sorted(plain, {}, [](const TimedPlan& timed) { return timed.plan.index; }));
}

// A plain product overwrites its result; a kernel after it adds it to what is kept.
TEST(CudnnConvolutions, KeepGradientsAloneOrAdded) {
  test::Recorder recorder;
  const test::UseRecorder use{recorder};
  const runtime::Buffer memory{core::Bytes{1 << 20}, runtime::Memory::device};
  std::byte* const at = memory.on_device<std::byte>().data();
  runtime::Stream stream;
  CudnnConvolutions cudnn{GpuModel{describe(cards[1]), 90}};
  const auto convolution =
      cudnn.plan({small_problem(), ConvPass::weight_gradient, Epilogue::kept}, core::DType::bfloat16);
  for (const bool adds : {false, true}) {
    convolution->enqueue(
        stream, {.x = at, .w = at + (1 << 16), .y = at + (2 << 16), .workspace = at + (3 << 16), .adds = adds});
    const std::vector<std::string> lines = recorder.take_lines();
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_NE(lines[0].find(" conv_weight_gradient "), std::string::npos) << lines[0];
    EXPECT_NE(lines[1].find(" keep_gradient "), std::string::npos) << lines[1];
  }
  for (const std::string& complaint : recorder.complaints()) ADD_FAILURE() << complaint;
}

// Operations enqueued for cuDNN touch the same memory as plain loops.
TEST(CudnnConvolutions, TouchWhatPlainOnesDo) {
  test::Recorder recorder;
  const test::UseRecorder use{recorder};
  const ConvProblem p = small_problem();
  const runtime::Buffer x{core::Bytes{2 * 9 * 9 * 8 * 2}, runtime::Memory::device};
  const runtime::Buffer w{core::Bytes{16 * 3 * 3 * 8 * 2}, runtime::Memory::device};
  const runtime::Buffer y{core::Bytes{2 * 5 * 5 * 16 * 2}, runtime::Memory::device};
  const runtime::Buffer workspace{most_workspace, runtime::Memory::device};
  const auto of = [](const runtime::Buffer& buffer) { return buffer.on_device<std::byte>().data(); };
  const runtime::Buffer bias{core::Bytes{16 * 2}, runtime::Memory::device};
  CudnnConvolutions cudnn{GpuModel{describe(cards[1]), 90}, {.always_fuses = true}};
  test::PlainConvolutions plain{true};
  // The name and places, without the parts that differ: grid, body, and the workspace.
  runtime::Stream stream;
  const auto places = [&](Convolutions& by, const Product& product) {
    const ConvOperands operands{
        .x = of(x), .w = of(w), .y = of(y), .workspace = of(workspace), .rounded_bias = of(bias)};
    by.plan(product, core::DType::bfloat16)->enqueue(stream, operands);
    std::string line = recorder.take_lines().front();
    const std::size_t name = line.find(' '), first = line.find('<');
    line = line.substr(name, line.find(' ', name + 1) - name) + line.substr(first);
    return line.substr(0, line.find(" >3["));
  };
  // Without a GPU, no plan is built for the other epilogues.
  constexpr std::pair<ConvPass, Epilogue> products[]{{ConvPass::forward, Epilogue::none},
                                                     {ConvPass::forward, Epilogue::bias},
                                                     {ConvPass::forward, Epilogue::bias_relu},
                                                     {ConvPass::input_gradient, Epilogue::none},
                                                     {ConvPass::weight_gradient, Epilogue::none}};
  for (const auto& [pass, epilogue] : products)
    EXPECT_EQ(places(cudnn, {p, pass, epilogue}), places(plain, {p, pass, epilogue}));
  for (const std::string& complaint : recorder.complaints()) ADD_FAILURE() << complaint;
}

}  // namespace
}  // namespace lockstep::nn::cuda

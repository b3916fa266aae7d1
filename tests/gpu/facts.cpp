// gpu_facts versions|ceilings|plans: prints facts about a GPU; exit code 77 without one. versions: the GPU and its
// libraries; ceilings: its rates of copies and matrix products, both as lines of JSON. plans: the times of cuDNN's
// plans for each product of ResNet-50, as a table.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>
#include <vector>

#include "gpu/cudnn_description.hpp"
#include "gpu/plan_table.hpp"
#include "gpu/use_gpu.hpp"
#include "nn/cuda/cudnn_graph.hpp"
#include "runtime/device.hpp"
#include "support/recipe_models.hpp"

namespace {

using namespace lockstep;
using nlohmann::ordered_json;
using runtime::Buffer;
using runtime::Memory;

void print_line(const ordered_json& line) { core::print(line.dump() + "\n"); }

void print_versions() {
  const runtime::GpuSurvey survey = runtime::survey_gpus();
  for (const runtime::Gpu& gpu : survey.gpus)
    print_line({{"kind", "gpu"},
                {"name", gpu.name},
                {"uuid", gpu.uuid},
                {"pci", gpu.pci},
                {"memory_bytes", gpu.memory.value},
                {"architecture", gpu.architecture},
                {"n_multiprocessors", gpu.n_multiprocessors}});
  print_line({{"kind", "versions"},
              {"driver_cuda", survey.driver},
              {"toolkit_cuda", survey.toolkit},
              {"cudnn", test::cudnn_version()}});
  print_line({{"kind", "cudnn_device"}, {"properties", ordered_json::parse(test::describe_for_cudnn())}});
}

/// The median of 7 windows, in seconds for one call of n in a row; the first window does not count.
double seconds_of(runtime::Stream& stream, int n, const std::function<void()>& call) {
  std::vector<double> windows;
  for (int window = 0; window < 8; ++window) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < n; ++i) call();
    stream.wait();
    windows.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / n);
  }
  std::ranges::sort(windows.begin() + 1, windows.end());
  return windows[4];
}

void print_copies() {
  constexpr std::size_t n_bytes = std::size_t{1} << 30;
  runtime::Stream stream;
  const Buffer first{core::Bytes{n_bytes}, Memory::device}, second{core::Bytes{n_bytes}, Memory::device};
  const Buffer host{core::Bytes{n_bytes}, Memory::pinned};
  const auto print = [&](const char* what, int n, double bytes_of_call, const std::function<void()>& copy) {
    const double seconds = seconds_of(stream, n, copy);
    print_line({{"kind", "copy"}, {"what", what}, {"GBps", bytes_of_call / seconds / 1e9}});
  };
  const auto source = runtime::DeviceSpan<const std::byte>{first.on_device<std::byte>()};
  // Each byte is read and written.
  print("device to device, read and written", 20, 2.0 * n_bytes,
        [&] { stream.copy(second.on_device<std::byte>(), source); });
  print("pinned host to device", 4, n_bytes, [&] { stream.copy(second.on_device<std::byte>(), host.bytes()); });
  print("device to pinned host", 4, n_bytes, [&] { stream.copy(host.bytes(), source); });
}

void print_products() {
  constexpr std::uint64_t n = 8192;
  runtime::Stream stream;
  nn::cuda::CudnnConvolutions convolutions;
  const Buffer x{core::Bytes{n * n * 4}, Memory::device}, w{core::Bytes{n * n * 4}, Memory::device};
  const Buffer y{core::Bytes{n * n * 4}, Memory::device};
  for (const core::DType type : {core::DType::bfloat16, core::DType::float16, core::DType::float32}) {
    const auto plan = convolutions.plan({{.name = "matrix product", .n_samples = n, .n_in = n, .n_out = n}}, type);
    const Buffer workspace{core::Bytes{plan->workspace_bytes()}, Memory::device};
    const nn::cuda::ConvOperands operands{.x = x.on_device<std::byte>().data(),
                                          .w = w.on_device<std::byte>().data(),
                                          .y = y.on_device<std::byte>().data(),
                                          .workspace = workspace.on_device<std::byte>().data()};
    const double seconds = seconds_of(stream, 20, [&] { plan->enqueue(stream, operands); });
    print_line({{"kind", "product"},
                {"what", fmt::format("{0} x {0} x {0}, cuDNN's first plan", n)},
                {"type", core::name(type)},
                {"TFLOPs", 2.0 * n * n * n / seconds / 1e12}});
  }
}

// Times all plans, as a training run without a cache does.
void print_plans() {
  const std::vector<test::RecipeModel> models = test::recipe_models();
  const auto model = std::ranges::find(models, std::string_view{"resnet50_synthetic"}, &test::RecipeModel::recipe);
  core::require(model != models.end(), "there is a recipe of ResNet-50");
  const std::vector<nn::cuda::Product> step = nn::cuda::products_of(make_model(model->spec), model->batch);
  const bool has_bfloat16 = runtime::survey_gpus().gpus.front().architecture >= 80;
  const core::DType type = has_bfloat16 ? core::DType::bfloat16 : core::DType::float16;
  test::PlanTable table{step};
  core::print("{}, {} samples, {}, cuDNN {}; medians of up to 5 turns, the cache emptied before each\n", model->recipe,
              model->batch, core::name(type), test::cudnn_version());
  core::print(table.header());
  nn::cuda::CudnnConvolutions convolutions{
      {.n_threads = static_cast<int>(std::min(16U, std::thread::hardware_concurrency())),
       .on_timed = [&](const auto& product, auto plans) { core::print(table.row(product, plans)); }}};
  nn::ExecutorOptions alone;
  alone.agree = [](std::span<double>) {};
  convolutions.choose(step, type, alone);
  core::print(table.sums());
}

}  // namespace

int main(int argc, char** argv) {
  core::keep_standard_places();
  const std::string_view asked = argc == 2 ? argv[1] : "";
  if (asked != "versions" && asked != "ceilings" && asked != "plans") {
    core::print("usage: gpu_facts versions|ceilings|plans\n");
    return 2;
  }
  try {
    if (!test::use_gpu()) return test::skipped;
    if (asked == "versions") {
      print_versions();
    } else if (asked == "plans") {
      print_plans();
    } else {
      print_copies();
      print_products();
    }
    return 0;
  } catch (const std::exception& error) {
    core::print("gpu_facts: {}\n", error.what());
    return 1;
  }
}

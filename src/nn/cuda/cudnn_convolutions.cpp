#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <exception>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "core/error.hpp"
#include "core/handle.hpp"
#include "nn/cuda/cudnn_askers.hpp"
#include "nn/cuda/cudnn_search.hpp"
#include "nn/cuda/plan_choice.hpp"
#include "runtime/kernel/launch.hpp"

namespace lockstep::nn::cuda {
namespace {

using runtime::Buffer;
using runtime::Memory;

/// What is planned, and for which GPU: one that is described, or that of a handle.
struct Wanted {
  ConvProblem problem;
  ConvPass pass;
  core::DType type;
  const GpuModel* gpu;
  cudnnHandle_t handle;

  [[nodiscard]] const char* name() const {
    switch (pass) {
      case ConvPass::forward: return "conv";
      case ConvPass::input_gradient: return "conv_input_gradient";
      case ConvPass::weight_gradient: break;
    }
    return "conv_weight_gradient";
  }
  [[nodiscard]] std::string key() const { return fmt::format("{} {} {}", name(), core::name(type), describe(problem)); }
  [[nodiscard]] std::size_t x_bytes() const {
    return core::size_of(type) * problem.n_samples * problem.height * problem.width * problem.n_in;
  }
  [[nodiscard]] std::size_t w_bytes() const {
    return core::size_of(type) * problem.n_out * problem.kernel * problem.kernel * problem.n_in;
  }
  [[nodiscard]] std::size_t y_bytes() const {
    return core::size_of(type) * problem.n_samples * problem.height_out() * problem.width_out() * problem.n_out;
  }
  [[nodiscard]] PlanSearch search() const { return {problem, pass, type, gpu, handle}; }
};

class CudnnConvolution final : public Convolution {
 public:
  CudnnConvolution(Wanted wanted, CudnnGraph graph)
      : wanted_{std::move(wanted)},
        graph_{std::move(graph)},
        workspace_bytes_{static_cast<std::size_t>(graph_->get_workspace_size())} {}

  std::size_t workspace_bytes() const noexcept override { return workspace_bytes_; }

  void enqueue(runtime::Stream& stream, const ConvOperands& operands) override {
    using runtime::kernel::Region;
    const ConvPass pass = wanted_.pass;
    const Region x{operands.x, wanted_.x_bytes()};
    const Region w{operands.w, wanted_.w_bytes()};
    const Region y{operands.y, wanted_.y_bytes()};
    const Region workspace{operands.workspace, workspace_bytes()};
    const std::array<Region, 2> reads{pass == ConvPass::input_gradient ? y : x,
                                      pass == ConvPass::weight_gradient ? y : w};
    const std::array<Region, 2> writes{pass == ConvPass::forward          ? y
                                       : pass == ConvPass::input_gradient ? x
                                                                          : w,
                                       workspace};
    const Body body{this, operands};
    stream.enqueue({.name = wanted_.name(),
                    .reads = reads,
                    .writes = std::span{writes}.first(workspace.n_bytes > 0 ? 2 : 1),
                    .grid = {},
                    .body = std::as_bytes(std::span{&body, 1}),
                    .on_host = nullptr,
                    .on_cuda = &execute});
  }

 private:
  struct Body {
    CudnnConvolution* convolution;
    ConvOperands operands;
  };

  static int execute(const std::byte* bytes, const runtime::kernel::Grid&, void* stream) {
    const auto& [self, operands] = *reinterpret_cast<const Body*>(bytes);
    cudnnHandle_t handle = self->wanted_.handle;
    check(cudnnSetStream(handle, static_cast<cudaStream_t>(stream)), "does not take a stream");
    self->pointers_[uid_x] = operands.x;
    self->pointers_[uid_w] = operands.w;
    self->pointers_[uid_y] = operands.y;
    check(self->graph_->execute(handle, self->pointers_, operands.workspace),
          fmt::format("cannot compute {} of {}", self->wanted_.name(), self->wanted_.problem.name));
    return 0;
  }

  Wanted wanted_;
  CudnnGraph graph_;
  std::size_t workspace_bytes_;
  std::unordered_map<std::int64_t, void*> pointers_{};
};

/// Those worth their time. Compiled ones were never the fastest for larger problems (H100, cuDNN 9.14: none of 71 of
/// ResNet-50 at 256 samples; 6 of 35 of ResNet-18 at 64x64, by up to a fifth), and take the longest to have.
PlanFilter timed_plans(const Wanted& wanted, bool is_exhaustive) {
  constexpr std::size_t all = std::numeric_limits<std::size_t>::max(), small_bytes = std::size_t{16} << 20;
  PlanFilter filter{.is_deterministic = false, .most = 8, .has_all_engines = true};
  if (wanted.x_bytes() + wanted.w_bytes() + wanted.y_bytes() > small_bytes) filter.most_compiled = 0;
  if (is_exhaustive) filter.most = filter.most_compiled = all;
  return filter;
}

/// They, and the search that takes them.
std::pair<PlanSearch, std::vector<ConvPlan>> find_timed(const Wanted& wanted, bool is_exhaustive) {
  PlanFilter filter = timed_plans(wanted, is_exhaustive);
  PlanSearch search = wanted.search();
  std::vector<ConvPlan> plans = search.find(filter);
  if (!plans.empty() || filter.most_compiled > 0) return {std::move(search), std::move(plans)};
  filter.most_compiled = PlanFilter{}.most_compiled;  // there is no other
  PlanSearch again = wanted.search();
  plans = again.find(filter);
  return {std::move(again), std::move(plans)};
}

/// Times plans by the device's clock on memory of the problem's own sizes, which no cache holds yet. On a GPU that is
/// described only all take no time.
class TimedPlans final : public PlanMaker {
 public:
  TimedPlans(const Wanted& wanted, bool is_exhaustive) : wanted_{wanted}, is_exhaustive_{is_exhaustive} {}

  void prepare() { prepare(wanted_.handle); }
  /// By any thread, with a handle that no other uses meanwhile.
  void prepare(cudnnHandle_t handle) {
    Wanted wanted = wanted_;
    wanted.handle = handle;
    std::tie(search_, plans_) = find_timed(wanted, is_exhaustive_);
  }

  std::vector<std::string> offer() override {
    if (!search_) prepare();
    std::vector<std::string> names;
    for (const ConvPlan& plan : plans_) names.push_back(plan.name);
    return names;
  }

  double seconds(std::size_t plan) override {
    if (wanted_.gpu != nullptr) return 0;
    if (!memory_) memory_.emplace(take_memory());
    CudnnConvolution convolution{wanted_, search_->take(plans_[plan])};
    const ConvOperands operands{memory_->x.on_device<std::byte>().data(), memory_->w.on_device<std::byte>().data(),
                                memory_->y.on_device<std::byte>().data(),
                                memory_->workspace.on_device<std::byte>().data()};
    try {
      runtime::Stream& stream = memory_->stream;
      stream.fill(memory_->emptied.on_device<std::byte>(), std::byte{0});
      const runtime::Event begin = stream.mark_time();
      convolution.enqueue(stream, operands);
      const runtime::Event end = stream.mark_time();
      stream.wait();
      return end.since(begin).value;
    } catch (const core::Error&) {
      return std::numeric_limits<double>::infinity();
    }
  }

  std::vector<std::byte> store(std::size_t plan) override { return search_->store(plans_[plan]); }

  /// Of its memory and plans nothing is left.
  void forget() {
    memory_.reset();
    plans_.clear();
    search_.reset();
  }

 private:
  struct TimedMemory {
    Buffer x, w, y, workspace;
    Buffer emptied;  ///< of what it pushes out of the cache
    runtime::Stream stream{};
  };

  TimedMemory take_memory() {
    core::Bytes workspace{0};
    for (const ConvPlan& plan : plans_) workspace.value = std::max(workspace.value, plan.workspace.value);
    TimedMemory memory{.x = Buffer{core::Bytes{wanted_.x_bytes()}, Memory::device},
                       .w = Buffer{core::Bytes{wanted_.w_bytes()}, Memory::device},
                       .y = Buffer{core::Bytes{wanted_.y_bytes()}, Memory::device},
                       .workspace = Buffer{workspace, Memory::device},
                       .emptied = Buffer{core::Bytes{std::uint64_t{256} << 20}, Memory::device}};  // no cache is larger
    for (const Buffer* buffer : {&memory.x, &memory.w, &memory.y})  // zeros would draw less power than numbers do
      memory.stream.fill(buffer->on_device<std::byte>(), std::byte{0x3c});
    return memory;
  }

  Wanted wanted_;
  bool is_exhaustive_;
  std::optional<PlanSearch> search_{};
  std::vector<ConvPlan> plans_{};
  std::optional<TimedMemory> memory_{};
};

/// Of timed_plans(): what others have kept may not be among those that these offer.
constexpr int choice_version = 2;

// Of the GPU in use, in words.
std::string name_gpu() {
  int device = 0, driver = 0;
  cudaDeviceProp gpu{};
  check_cuda(cudaGetDevice(&device));
  check_cuda(cudaGetDeviceProperties(&gpu, device));
  check_cuda(cudaDriverGetVersion(&driver));
  return fmt::format("{}, {} SMs, CUDA driver {}", gpu.name, gpu.multiProcessorCount, driver);
}

std::string name_machine(const std::string& gpu) {
  return fmt::format("{}, cuDNN {}, frontend {}, choice {}", gpu, cudnnGetVersion(), CUDNN_FRONTEND_VERSION,
                     choice_version);
}

}  // namespace

struct CudnnConvolutions::State {
  std::optional<GpuModel> gpu{};
  CudnnHandle handle{};
  PlanChoice rules{};
  PlanCache cache{"", ""};
  std::set<std::string> chosen{};
  std::map<std::pair<std::string, bool>, CudnnGraph> planned{};  ///< by key, and whether it was chosen then

  [[nodiscard]] Wanted want(const ConvProblem& problem, ConvPass pass, core::DType type) const {
    return {problem, pass, type, gpu ? &*gpu : nullptr, handle.get()};
  }
};

CudnnConvolutions::CudnnConvolutions(const PlanChoice& rules) : state_{std::make_unique<State>()} {
  state_->handle = open_handle();
  state_->rules = rules;
  state_->cache = PlanCache{rules.folder, name_machine(name_gpu())};
}
CudnnConvolutions::CudnnConvolutions(GpuModel gpu, const PlanChoice& rules) : state_{std::make_unique<State>()} {
  state_->rules = rules;
  state_->cache = PlanCache{rules.folder, name_machine(fmt::format("sm_{} as described", gpu.architecture()))};
  state_->gpu.emplace(std::move(gpu));
}
CudnnConvolutions::~CudnnConvolutions() = default;

// Some are compiled while others are timed, one by one. Some ranks may know some of them: so each goes through all, in
// one order.
void CudnnConvolutions::choose(std::span<const Product> products, core::DType type, const ExecutorOptions& options) {
  if (options.is_deterministic || !options.agree) return;
  constexpr std::size_t portion = 16;  // that are kept if this is as far as it gets
  std::vector<Wanted> wanted;
  for (const auto& [problem, pass] : products) {
    Wanted one = state_->want(problem, pass, type);
    if (state_->chosen.insert(one.key()).second) wanted.push_back(std::move(one));
  }
  Askers<TimedPlans>::Handles handles;
  std::deque<TimedPlans> plans;
  std::vector<TimedPlans*> unknown;
  for (const Wanted& one : wanted) {
    plans.emplace_back(one, state_->rules.is_exhaustive);
    if (state_->cache.find(one.key()) == nullptr) unknown.push_back(&plans.back());
  }
  Askers<TimedPlans> askers{unknown, state_->rules.n_threads, !state_->gpu, handles};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    askers.wait_for(&plans[i], options.on_progress);
    choose_plan(wanted[i].key(), plans[i], state_->cache, options.agree);
    plans[i].forget();
    if (options.on_progress) options.on_progress();
    if ((i + 1) % portion == 0 || i + 1 == wanted.size()) state_->cache.save();
  }
}

std::unique_ptr<Convolution> CudnnConvolutions::plan(const ConvProblem& problem, ConvPass pass, core::DType type) {
  const Wanted wanted = state_->want(problem, pass, type);
  const StoredPlan* const chosen = state_->chosen.contains(wanted.key()) ? state_->cache.find(wanted.key()) : nullptr;
  CudnnGraph& graph = state_->planned[{wanted.key(), chosen != nullptr}];  // running it changes nothing of it
  if (!graph && chosen != nullptr) graph = PlanSearch::restore(chosen->code, wanted.gpu, wanted.handle);
  if (graph) return std::make_unique<CudnnConvolution>(wanted, graph);
  const auto find_first = [&] {
    PlanSearch search = wanted.search();
    std::vector<ConvPlan> found = search.find({.prefers_ready = true});
    return std::pair{std::move(search), std::move(found)};
  };
  auto [search, plans] = chosen == nullptr ? find_first() : find_timed(wanted, state_->rules.is_exhaustive);
  if (chosen != nullptr) std::erase_if(plans, [&](const ConvPlan& plan) { return plan.name != chosen->name; });
  if (plans.empty())
    core::fail_system(fmt::format("cuDNN {} has no deterministic plan within {} for {} of {}", cudnnGetVersion(),
                                  core::format_bytes(most_workspace), wanted.name(), problem.name));
  graph = search.take(plans.front());
  return std::make_unique<CudnnConvolution>(wanted, graph);
}

}  // namespace lockstep::nn::cuda

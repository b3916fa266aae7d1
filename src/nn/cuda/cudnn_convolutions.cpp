#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <exception>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "core/error.hpp"
#include "core/handle.hpp"
#include "nn/cuda/convolution.hpp"
#include "nn/cuda/cudnn_askers.hpp"
#include "nn/cuda/cudnn_convolution.hpp"
#include "nn/cuda/plan_choice.hpp"

namespace lockstep::nn::cuda {
namespace {

using runtime::Buffer;
using runtime::Memory;

/// One operation if the result is only written, two if it is added.
class KeptConvolution final : public Convolution {
 public:
  KeptConvolution(std::unique_ptr<Convolution> writing, std::unique_ptr<Convolution> adding)
      : writing_{std::move(writing)}, adding_{std::move(adding)} {}

  std::size_t workspace_bytes() const noexcept override {
    return std::max(writing_->workspace_bytes(), adding_->workspace_bytes());
  }
  void enqueue(runtime::Stream& stream, const ConvOperands& operands) override {
    (operands.adds ? adding_ : writing_)->enqueue(stream, operands);
  }

 private:
  std::unique_ptr<Convolution> writing_, adding_;
};

/// Compiled plans were never the fastest for larger products, and take the longest to make. (H100, cuDNN 9.14: none of
/// 71 of ResNet-50 at 256 samples; 6 of 35 of ResNet-18 at 64x64, by up to a fifth.)
bool is_small(const Product& product, core::DType type) {
  return core::size_of(type) * product.problem.n_elements() <= std::size_t{16} << 20;
}

/// The plans that are worth timing.
PlanFilter timed_plans(const Wanted& wanted, bool is_exhaustive) {
  constexpr std::size_t all = std::numeric_limits<std::size_t>::max();
  PlanFilter filter{.is_deterministic = false, .most = 8, .has_all_engines = true};
  if (wanted.is_fused()) filter.most_compiled = 2;
  if (!is_small(wanted.product, wanted.type)) filter.most_compiled = 0;
  if (is_exhaustive) filter.most = filter.most_compiled = all;
  return filter;
}

/// The plans, and the search that makes them.
std::pair<PlanSearch, std::vector<ConvPlan>> find_timed(const Wanted& wanted, PlanFilter filter) {
  PlanSearch search = wanted.search();
  std::vector<ConvPlan> plans = search.find(filter);
  if (!plans.empty() || filter.most_compiled > 0 || wanted.is_fused()) return {std::move(search), std::move(plans)};
  filter.most_compiled = PlanFilter{}.most_compiled;  // there is no other plan
  PlanSearch again = wanted.search();
  plans = again.find(filter);
  return {std::move(again), std::move(plans)};
}

/// Times plans by the device's clock on memory of the problem's own sizes, which no cache holds yet. On a GPU that is
/// only described, all plans take no time.
class TimedPlans final : public PlanMaker {
 public:
  using MakeSplit = std::function<std::unique_ptr<Convolution>()>;
  using OnTimed = decltype(PlanChoice::on_timed);
  using Clock = std::chrono::steady_clock;

  /// `make_split` belongs to a product with an epilogue; it is called when the plain product has been chosen. Plans
  /// prepared after `compiles_until` are not compiled.
  TimedPlans(const Wanted& wanted, const PlanFilter& filter, Clock::time_point compiles_until, MakeSplit make_split,
             const OnTimed& on_timed)
      : wanted_{wanted},
        filter_{filter},
        compiles_until_{compiles_until},
        make_split_{std::move(make_split)},
        on_timed_{on_timed} {}

  void prepare() { prepare(wanted_.handle); }
  /// Any thread may call this, with a handle that no other thread uses meanwhile.
  void prepare(cudnnHandle_t handle) {
    Wanted wanted = wanted_;
    wanted.handle = handle;
    PlanFilter filter = filter_;
    is_hurried_ = filter.most_compiled > 0 && Clock::now() > compiles_until_;
    if (is_hurried_) filter.most_compiled = 0;
    std::tie(search_, plans_) = find_timed(wanted, filter);
  }

  std::vector<std::string> offer(bool all) override {
    if (all && is_hurried_) compiles_until_ = Clock::time_point::max();
    if (!search_ || (all && is_hurried_)) prepare();
    std::vector<std::string> names;
    for (const ConvPlan& plan : plans_) names.push_back(plan.name);
    if (wanted_.is_fused()) names.emplace_back(split_name);
    return names;
  }

  double seconds(std::size_t plan) override {
    if (wanted_.gpu != nullptr) return 0;
    if (plan == plans_.size() && !split_) split_ = make_split_();
    if (!memory_) memory_.emplace(take_memory());
    std::unique_ptr<Convolution> planned;
    if (plan < plans_.size()) planned = make_cudnn_convolution(wanted_, search_->take(plans_[plan]));
    Convolution& convolution = planned ? *planned : *split_;
    try {
      const bool is_new = wanted_.product.epilogue == Epilogue::bias_relu && n_seen_++ < plans_.size();
      if (planned && is_new && !keeps_nan(convolution)) return std::numeric_limits<double>::infinity();
      runtime::Stream& stream = memory_->stream;
      stream.fill(memory_->bias.on_device<std::byte>(), some_number);
      stream.fill(memory_->emptied.on_device<std::byte>(), std::byte{0});
      const runtime::Event begin = stream.mark_time();
      convolution.enqueue(stream, memory_->operands());
      const runtime::Event end = stream.mark_time();
      stream.wait();
      return end.since(begin).value;
    } catch (const core::Error& error) {
      obstacle_ = error.problem().what;
      return std::numeric_limits<double>::infinity();
    }
  }

  void note(std::span<const double> medians) override {
    if (!on_timed_) return;
    std::vector<TimedPlan> timed;
    for (const ConvPlan& plan : plans_) timed.push_back({plan, medians[timed.size()]});
    if (wanted_.is_fused()) timed.push_back({{.name = std::string{split_name}, .is_listed = false}, medians.back()});
    on_timed_(wanted_.product, timed);
  }

  [[nodiscard]] std::string obstacle() const override { return obstacle_; }

  std::vector<std::byte> store(std::size_t plan) override {
    return plan < plans_.size() ? search_->store(plans_[plan]) : std::vector<std::byte>{};
  }

  /// Frees its memory and plans.
  void forget() {
    memory_.reset();
    split_.reset();
    plans_.clear();
    search_.reset();
  }

 private:
  static constexpr std::byte some_number{0x3c};  ///< in every type; zeros would draw less power

  struct TimedMemory {
    Buffer x, w, y, workspace, bias, rectified;
    Buffer emptied;  ///< written to push other data out of the cache
    runtime::Stream stream{};

    [[nodiscard]] ConvOperands operands() const {
      return {.x = x.on_device<std::byte>().data(),
              .w = w.on_device<std::byte>().data(),
              .y = y.on_device<std::byte>().data(),
              .workspace = workspace.on_device<std::byte>().data(),
              .bias = bias.on_device<float>().data(),
              .rounded_bias = bias.on_device<float>().data(),
              .rectified = rectified.on_device<std::byte>().data()};
    }
  };

  /// ReLU as a maximum turns NaN into 0, which would hide that a run has diverged.
  bool keeps_nan(Convolution& convolution) {
    const std::size_t n_bytes = wanted_.product.problem.n_out * core::size_of(wanted_.type);
    const Buffer found{core::Bytes{n_bytes}, Memory::pinned};
    runtime::Stream& stream = memory_->stream;
    stream.fill(memory_->bias.on_device<std::byte>(), std::byte{0xff});  // NaN in every type
    convolution.enqueue(stream, memory_->operands());
    stream.copy(found.bytes(),
                runtime::DeviceSpan<const std::byte>::at(memory_->y.on_device<std::byte>().data(), n_bytes));
    stream.wait();
    return core::visit(wanted_.type, [&]<class T>(std::type_identity<T>) {
      return std::ranges::all_of(found.as<T>(), [](T y) { return std::isnan(static_cast<float>(y)); });
    });
  }

  TimedMemory take_memory() {
    core::Bytes workspace{0};
    for (const ConvPlan& plan : plans_) workspace.value = std::max(workspace.value, plan.workspace.value);
    if (wanted_.is_fused()) workspace.value = std::max(workspace.value, most_workspace.value + wanted_.w_bytes());
    const bool is_rectified = wanted_.product.epilogue == Epilogue::relu_backward;
    TimedMemory memory{.x = Buffer{core::Bytes{wanted_.x_bytes()}, Memory::device},
                       .w = Buffer{core::Bytes{wanted_.w_bytes()}, Memory::device},
                       .y = Buffer{core::Bytes{wanted_.y_bytes()}, Memory::device},
                       .workspace = Buffer{workspace, Memory::device},
                       .bias = Buffer{core::Bytes{wanted_.product.problem.n_out * sizeof(float)}, Memory::device},
                       .rectified = Buffer{core::Bytes{is_rectified ? wanted_.x_bytes() : 0}, Memory::device},
                       .emptied = Buffer{core::Bytes{std::uint64_t{256} << 20}, Memory::device}};  // no cache is larger
    for (const Buffer* buffer : {&memory.x, &memory.w, &memory.y, &memory.bias, &memory.rectified})
      memory.stream.fill(buffer->on_device<std::byte>(), some_number);
    return memory;
  }

  Wanted wanted_;
  PlanFilter filter_;
  Clock::time_point compiles_until_;
  bool is_hurried_ = false;
  MakeSplit make_split_;
  const OnTimed& on_timed_;
  std::unique_ptr<Convolution> split_{};
  std::optional<PlanSearch> search_{};
  std::vector<ConvPlan> plans_{};
  std::optional<TimedMemory> memory_{};
  std::size_t n_seen_ = 0;  ///< plans take turns; the first turn covers all
  std::string obstacle_{};
};

/// Increase when timed_plans() changes: stored choices may then not be among its plans.
constexpr int choice_version = 4;

// The GPU in use, in words.
std::string name_gpu() {
  int device = 0, driver = 0;
  cudaDeviceProp gpu{};
  check_cuda(cudaGetDevice(&device));
  check_cuda(cudaGetDeviceProperties(&gpu, device));
  check_cuda(cudaDriverGetVersion(&driver));
  return fmt::format("{}, {} SMs, CUDA driver {}", gpu.name, gpu.multiProcessorCount, driver);
}

Product without_epilogue(Product product) {
  product.epilogue = Epilogue::none;
  return product;
}

std::string name_machine(const std::string& gpu) {
  return fmt::format("{}, cuDNN {}, frontend {}, choice {}", gpu, cudnnGetVersion(), CUDNN_FRONTEND_VERSION,
                     choice_version);
}

}  // namespace

bool may_fuse(const Product& product, core::DType type) {
  if (product.pass == ConvPass::forward) return product.epilogue != Epilogue::none;
  if (product.epilogue == Epilogue::kept && type == core::DType::float32) return false;  // a plain product keeps it
  return product.epilogue != Epilogue::none && is_small(product, type);
}

struct CudnnConvolutions::State {
  std::optional<GpuModel> gpu{};
  CudnnHandle handle{};
  PlanChoice rules{};
  PlanCache cache{"", ""};
  std::set<std::string> chosen{};
  std::map<std::pair<std::string, bool>, CudnnGraph> planned{};  ///< by key, and by whether a choice was stored

  [[nodiscard]] Wanted want(const Product& product, core::DType type) const {
    return {product, type, gpu ? &*gpu : nullptr, handle.get()};
  }

  /// A graph with its plan: the chosen one, or else the first; null if there is none. Running it does not change it.
  [[nodiscard]] CudnnGraph graph_of(const Wanted& wanted, const StoredPlan* stored) {
    CudnnGraph& graph = planned[{wanted.key(), stored != nullptr}];
    if (!graph && stored != nullptr) graph = PlanSearch::restore(stored->code, wanted.gpu, wanted.handle);
    if (graph) return graph;
    const auto find_first = [&] {
      PlanSearch search = wanted.search();
      std::vector<ConvPlan> found = search.find({.prefers_ready = true});
      return std::pair{std::move(search), std::move(found)};
    };
    auto [search, plans] =
        stored == nullptr ? find_first() : find_timed(wanted, timed_plans(wanted, rules.is_exhaustive));
    if (stored != nullptr) std::erase_if(plans, [&](const ConvPlan& plan) { return plan.name != stored->name; });
    if (!plans.empty()) graph = search.take(plans.front());
    return graph;
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

// Some plans are compiled while others are timed. Ranks may know different plans, so all ranks handle all products in
// the same order.
void CudnnConvolutions::choose(std::span<const Product> products, core::DType type, const ExecutorOptions& options) {
  if (options.is_deterministic || !options.agree) return;
  constexpr std::size_t portion = 16;  // products, after which choices are saved
  std::vector<Wanted> wanted;
  const auto want = [&](const Product& product) {
    Wanted one = state_->want(product, type);
    if (state_->chosen.insert(one.key()).second) wanted.push_back(std::move(one));
  };
  for (const Product& product : products) {
    want(without_epilogue(product));
    if (may_fuse(product, type)) want(product);
  }
  Askers<TimedPlans>::Handles handles;
  std::deque<TimedPlans> plans;
  std::vector<TimedPlans*> unknown;
  const PlanChoice& rules = state_->rules;
  auto compiles_until = TimedPlans::Clock::time_point::max();
  if (!rules.is_exhaustive && !std::isinf(rules.compiling_s))
    compiles_until = TimedPlans::Clock::now() + std::chrono::milliseconds{std::llround(1e3 * rules.compiling_s)};
  for (const Wanted& one : wanted) {
    plans.emplace_back(
        one, timed_plans(one, rules.is_exhaustive), compiles_until, [&] { return plan_split(one.product, type); },
        rules.on_timed);
    if (rules.is_exhaustive || state_->cache.find(one.key()) == nullptr) unknown.push_back(&plans.back());
  }
  Askers<TimedPlans> askers{unknown, rules.n_threads, !state_->gpu, handles};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    askers.wait_for(&plans[i], options.on_progress);
    choose_plan(wanted[i].key(), plans[i], state_->cache, options.agree, rules.is_exhaustive);
    plans[i].forget();
    if (options.on_progress) options.on_progress();
    if ((i + 1) % portion == 0 || i + 1 == wanted.size()) state_->cache.save();
  }
}

std::unique_ptr<Convolution> CudnnConvolutions::plan_split(const Product& product, core::DType type) {
  return make_split(product, type, plan(without_epilogue(product), type));
}

std::unique_ptr<Convolution> CudnnConvolutions::plan(const Product& product, core::DType type) {
  const Wanted wanted = state_->want(product, type);
  const StoredPlan* const chosen = state_->chosen.contains(wanted.key()) ? state_->cache.find(wanted.key()) : nullptr;
  const bool is_split = chosen != nullptr ? chosen->name == split_name : !state_->rules.always_fuses;
  const CudnnGraph graph = wanted.is_fused() && is_split ? nullptr : state_->graph_of(wanted, chosen);
  if (!graph && wanted.is_fused()) return plan_split(product, type);
  if (!graph)
    core::fail_system(fmt::format("cuDNN {} has no deterministic plan within {} for {} of {}", cudnnGetVersion(),
                                  core::format_bytes(most_workspace), name(product), product.problem.name));
  auto planned = make_cudnn_convolution(wanted, graph);
  if (product.epilogue != Epilogue::kept) return planned;
  return std::make_unique<KeptConvolution>(std::move(planned), plan_split(product, type));
}

}  // namespace lockstep::nn::cuda

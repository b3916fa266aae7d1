#include "nn/cuda/cudnn_graph.hpp"

#include <cudnn_frontend.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>

#include "core/error.hpp"
#include "core/handle.hpp"
#include "runtime/kernel/launch.hpp"

namespace lockstep::nn::cuda {

namespace fe = cudnn_frontend;

namespace {

using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

void check(fe::error_t status, const std::string& what) {
  if (status.is_bad()) core::fail_system(fmt::format("cuDNN {}: {}", what, status.get_message()));
}

fe::DataType_t data_type(core::DType type) {
  switch (type) {
    case core::DType::float16: return fe::DataType_t::HALF;
    case core::DType::bfloat16: return fe::DataType_t::BFLOAT16;
    default: core::require(type == core::DType::float32, "convolutions are of floats of 16 or 32 bits");
  }
  return fe::DataType_t::FLOAT;
}

// Names of tensors for those who bring the memory; they survive a plan's being stored.
enum Uid : std::int64_t { uid_x = 1, uid_w, uid_y };

struct Dimensions {
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
};

// In cuDNN's order, channels innermost in memory.
Dimensions channels_last(std::uint64_t n, std::uint64_t c, std::uint64_t h, std::uint64_t w) {
  const auto i = [](std::uint64_t size) { return static_cast<std::int64_t>(size); };
  return {{i(n), i(c), i(h), i(w)}, {i(c * h * w), 1, i(c * w), i(c)}};
}

Tensor add_tensor(fe::graph::Graph& graph, const Dimensions& of, Uid uid) {
  return graph.tensor(fe::graph::Tensor_attributes{}.set_dim(of.sizes).set_stride(of.strides).set_uid(uid));
}

void make_output(const Tensor& tensor, const Dimensions& of, Uid uid) {
  tensor->set_dim(of.sizes).set_stride(of.strides).set_output(true).set_uid(uid);
}

template <class Attributes>
Attributes attributes_of(const ConvProblem& problem) {
  const auto padding = static_cast<std::int64_t>(problem.padding);
  const auto stride = static_cast<std::int64_t>(problem.stride);
  return Attributes{}.set_padding({padding, padding}).set_stride({stride, stride}).set_dilation({1, 1});
}

void add_convolution(fe::graph::Graph& graph, const ConvProblem& p, ConvPass pass) {
  const Dimensions x = channels_last(p.n_samples, p.n_in, p.height, p.width);
  const Dimensions w = channels_last(p.n_out, p.n_in, p.kernel, p.kernel);
  const Dimensions y = channels_last(p.n_samples, p.n_out, p.height_out(), p.width_out());
  switch (pass) {
    case ConvPass::forward: {
      const Tensor input = add_tensor(graph, x, uid_x);
      const Tensor weight = add_tensor(graph, w, uid_w);
      make_output(graph.conv_fprop(input, weight, attributes_of<fe::graph::Conv_fprop_attributes>(p)), y, uid_y);
      return;
    }
    case ConvPass::input_gradient: {
      const Tensor gradient = add_tensor(graph, y, uid_y);
      const Tensor weight = add_tensor(graph, w, uid_w);
      make_output(graph.conv_dgrad(gradient, weight, attributes_of<fe::graph::Conv_dgrad_attributes>(p)), x, uid_x);
      return;
    }
    case ConvPass::weight_gradient: {
      const Tensor gradient = add_tensor(graph, y, uid_y);
      const Tensor input = add_tensor(graph, x, uid_x);
      make_output(graph.conv_wgrad(gradient, input, attributes_of<fe::graph::Conv_wgrad_attributes>(p)), w, uid_w);
      return;
    }
  }
}

}  // namespace

struct GpuModel::Properties {
  std::shared_ptr<fe::DeviceProperties> of_cudnn = std::make_shared<fe::DeviceProperties>();
  int architecture = 0;
};

GpuModel::GpuModel(std::string_view description, int architecture) : properties_{std::make_unique<Properties>()} {
  properties_->architecture = architecture;
  check(properties_->of_cudnn->deserialize({description.begin(), description.end()}),
        "takes no such description of a GPU");
}
GpuModel::~GpuModel() = default;
GpuModel::GpuModel(GpuModel&&) noexcept = default;
GpuModel& GpuModel::operator=(GpuModel&&) noexcept = default;

/// A graph that is built, with what the heuristics offer for it: for a GPU that is described, or for that of a handle.
class PlanSearch {
 public:
  PlanSearch(const ConvProblem& problem, ConvPass pass, core::DType type, const GpuModel* gpu, cudnnHandle_t handle) {
    graph_.set_io_data_type(data_type(type))
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    if (gpu != nullptr) {
      graph_.set_device_properties(gpu->properties_->of_cudnn);
      graph_.set_sm_version(gpu->properties_->architecture);
    }
    add_convolution(graph_, problem, pass);
    check(graph_.validate(), "does not accept a convolution");
    check(gpu != nullptr ? graph_.build_operation_graph() : graph_.build_operation_graph(handle),
          "cannot build a convolution");
  }

  [[nodiscard]] fe::graph::Graph& graph() noexcept { return graph_; }

  std::vector<ConvPlan> find(core::Bytes most_bytes, std::size_t most) {
    std::vector<ConvPlan> plans;
    if (graph_.create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}).is_bad()) return plans;
    graph_.deselect_numeric_notes(
        {fe::NumericalNote_t::NONDETERMINISTIC, fe::NumericalNote_t::REDUCED_PRECISION_REDUCTION});
    graph_.deselect_workspace_greater_than(static_cast<std::int64_t>(most_bytes.value));
    const std::int64_t n_offered = graph_.get_execution_plan_count();
    for (std::int64_t i = 0; i < n_offered && plans.size() < most; ++i) {
      if (graph_.build_plan_at_index(i).is_bad()) continue;
      const auto workspace = static_cast<std::uint64_t>(graph_.get_workspace_size_plan_at_index(i));
      if (workspace <= most_bytes.value) plans.push_back({name(i), core::Bytes{workspace}, is_compiled(i), i});
    }
    return plans;
  }

 private:
  std::string name(std::int64_t i) const {
    std::string text;
    check(graph_.get_plan_name_at_index(i, text), "does not name a plan");
    return text;
  }
  bool is_compiled(std::int64_t i) const {
    std::vector<fe::BehaviorNote_t> notes;
    check(graph_.get_behavior_notes_for_plan_at_index(i, notes), "does not describe a plan");
    return std::ranges::find(notes, fe::BehaviorNote_t::RUNTIME_COMPILATION) != notes.end();
  }

  fe::graph::Graph graph_{};
};

std::vector<ConvPlan> find_plans(const ConvProblem& problem, ConvPass pass, core::DType type, const GpuModel& gpu,
                                 core::Bytes most_bytes, std::size_t most) {
  return PlanSearch{problem, pass, type, &gpu, nullptr}.find(most_bytes, most);
}

namespace {

struct HandlePolicy {
  using Raw = cudnnHandle_t;
  static Raw null() noexcept { return nullptr; }
  static void destroy(Raw raw) noexcept { cudnnDestroy(raw); }
};

void check(cudnnStatus_t status, const char* what) {
  if (status != CUDNN_STATUS_SUCCESS) core::fail_system(fmt::format("cuDNN {}: {}", what, cudnnGetErrorString(status)));
}

constexpr const char* name_of(ConvPass pass) {
  switch (pass) {
    case ConvPass::forward: return "conv";
    case ConvPass::input_gradient: return "conv_input_gradient";
    case ConvPass::weight_gradient: break;
  }
  return "conv_weight_gradient";
}

class CudnnConvolution final : public Convolution {
 public:
  CudnnConvolution(const ConvProblem& problem, ConvPass pass, core::DType type, const GpuModel* gpu,
                   cudnnHandle_t handle)
      : problem_{problem},
        pass_{pass},
        element_bytes_{core::size_of(type)},
        handle_{handle},
        search_{problem, pass, type, gpu, handle} {
    const std::vector<ConvPlan> plans = search_.find(most_workspace, 1);
    if (plans.empty())
      core::fail_system(fmt::format("cuDNN {} has no deterministic plan within {} for {} of {}", cudnnGetVersion(),
                                    core::format_bytes(most_workspace), name_of(pass), problem.name));
    plan_ = plans.front();
  }

  std::size_t workspace_bytes() const noexcept override { return plan_.workspace.value; }

  void enqueue(runtime::Stream& stream, const ConvOperands& operands) override {
    using runtime::kernel::Region;
    const ConvProblem& p = problem_;
    const Region x{operands.x, element_bytes_ * p.n_samples * p.height * p.width * p.n_in};
    const Region w{operands.w, element_bytes_ * p.n_out * p.kernel * p.kernel * p.n_in};
    const Region y{operands.y, element_bytes_ * p.n_samples * p.height_out() * p.width_out() * p.n_out};
    const Region workspace{operands.workspace.data(), workspace_bytes()};
    const std::array<Region, 2> reads{pass_ == ConvPass::input_gradient ? y : x,
                                      pass_ == ConvPass::weight_gradient ? y : w};
    const std::array<Region, 2> writes{pass_ == ConvPass::forward          ? y
                                       : pass_ == ConvPass::input_gradient ? x
                                                                           : w,
                                       workspace};
    const Body body{this, operands};
    stream.enqueue({.name = name_of(pass_),
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
    check(cudnnSetStream(self->handle_, static_cast<cudaStream_t>(stream)), "does not take a stream");
    self->pointers_[uid_x] = operands.x;
    self->pointers_[uid_w] = operands.w;
    self->pointers_[uid_y] = operands.y;
    check(self->search_.graph().execute_plan_at_index(self->handle_, self->pointers_, operands.workspace.data(),
                                                      self->plan_.index),
          fmt::format("cannot compute {} of {}", name_of(self->pass_), self->problem_.name));
    return 0;
  }

  ConvProblem problem_;
  ConvPass pass_;
  std::size_t element_bytes_;
  cudnnHandle_t handle_;
  PlanSearch search_;
  ConvPlan plan_{};
  std::unordered_map<std::int64_t, void*> pointers_{};
};

}  // namespace

struct CudnnConvolutions::State {
  std::optional<GpuModel> gpu{};
  core::UniqueHandle<HandlePolicy> handle{};
};

CudnnConvolutions::CudnnConvolutions() : state_{std::make_unique<State>()} {
  cudnnHandle_t raw = nullptr;
  check(cudnnCreate(&raw), "cannot be opened");
  state_->handle = core::UniqueHandle<HandlePolicy>{raw};
}
CudnnConvolutions::CudnnConvolutions(GpuModel gpu) : state_{std::make_unique<State>()} {
  state_->gpu.emplace(std::move(gpu));
}
CudnnConvolutions::~CudnnConvolutions() = default;

std::unique_ptr<Convolution> CudnnConvolutions::plan(const ConvProblem& problem, ConvPass pass, core::DType type) {
  return std::make_unique<CudnnConvolution>(problem, pass, type, state_->gpu ? &*state_->gpu : nullptr,
                                            state_->handle.get());
}

}  // namespace lockstep::nn::cuda

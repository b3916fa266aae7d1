#include "nn/cuda/cudnn_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/error.hpp"
#include "nn/cuda/cudnn_search.hpp"

namespace lockstep::nn::cuda {

namespace fe = cudnn_frontend;

void check(fe::error_t status, const std::string& what) {
  if (status.is_bad()) core::fail_system(fmt::format("cuDNN {}: {}", what, status.get_message()));
}
void check(cudnnStatus_t status, const char* what) {
  if (status != CUDNN_STATUS_SUCCESS) core::fail_system(fmt::format("cuDNN {}: {}", what, cudnnGetErrorString(status)));
}

namespace {

using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

fe::DataType_t data_type(core::DType type) {
  switch (type) {
    case core::DType::float16: return fe::DataType_t::HALF;
    case core::DType::bfloat16: return fe::DataType_t::BFLOAT16;
    default: core::require(type == core::DType::float32, "convolutions use floats of 16 or 32 bits");
  }
  return fe::DataType_t::FLOAT;
}

struct Dimensions {
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
};

// In cuDNN's order; in memory, channels are innermost.
Dimensions channels_last(std::uint64_t n, std::uint64_t c, std::uint64_t h, std::uint64_t w) {
  const auto i = [](std::uint64_t size) { return static_cast<std::int64_t>(size); };
  return {{i(n), i(c), i(h), i(w)}, {i(c * h * w), 1, i(c * w), i(c)}};
}

Tensor add_tensor(fe::graph::Graph& graph, const Dimensions& of, Uid uid) {
  return graph.tensor(fe::graph::Tensor_attributes{}.set_dim(of.sizes).set_stride(of.strides).set_uid(uid));
}

template <class Attributes>
Attributes attributes_of(const ConvProblem& problem) {
  const auto padding = static_cast<std::int64_t>(problem.padding);
  const auto stride = static_cast<std::int64_t>(problem.stride);
  return Attributes{}.set_padding({padding, padding}).set_stride({stride, stride}).set_dilation({1, 1});
}

/// A product, its epilogue and its result.
class ProductGraph {
 public:
  ProductGraph(fe::graph::Graph& graph, const Product& product) : graph_{graph}, product_{product} {}

  void add() {
    const Tensor plain = add_product();
    const Dimensions of_result = product_.pass == ConvPass::forward          ? y_
                                 : product_.pass == ConvPass::input_gradient ? x_
                                                                             : w_;
    plain->set_dim(of_result.sizes).set_stride(of_result.strides);
    const Tensor result = add_epilogue(plain);
    if (product_.epilogue == Epilogue::kept) result->set_data_type(fe::DataType_t::FLOAT);
    result->set_dim(of_result.sizes).set_stride(of_result.strides).set_output(true).set_uid(uid_of_result());
  }

 private:
  [[nodiscard]] Uid uid_of_result() const {
    return product_.pass == ConvPass::forward ? uid_y : product_.pass == ConvPass::input_gradient ? uid_x : uid_w;
  }

  Tensor add_product() {
    switch (product_.pass) {
      case ConvPass::forward: {
        const Tensor input = add_tensor(graph_, x_, uid_x);
        const Tensor weight = add_tensor(graph_, w_, uid_w);
        return graph_.conv_fprop(input, weight, attributes_of<fe::graph::Conv_fprop_attributes>(product_.problem));
      }
      case ConvPass::input_gradient: {
        const Tensor gradient = add_tensor(graph_, y_, uid_y);
        const Tensor weight = add_tensor(graph_, w_, uid_w);
        return graph_.conv_dgrad(gradient, weight, attributes_of<fe::graph::Conv_dgrad_attributes>(product_.problem));
      }
      case ConvPass::weight_gradient: break;
    }
    const Tensor gradient = add_tensor(graph_, y_, uid_y);
    const Tensor input = add_tensor(graph_, x_, uid_x);
    return graph_.conv_wgrad(gradient, input, attributes_of<fe::graph::Conv_wgrad_attributes>(product_.problem));
  }

  Tensor add_epilogue(const Tensor& plain) {
    const auto pointwise = [](fe::PointwiseMode_t mode) { return fe::graph::Pointwise_attributes{}.set_mode(mode); };
    switch (product_.epilogue) {
      case Epilogue::none: break;
      case Epilogue::bias:
      case Epilogue::bias_relu: {
        const Tensor bias = add_tensor(graph_, channels_last(1, product_.problem.n_out, 1, 1), uid_bias);
        const Tensor sum = graph_.pointwise(plain, bias, pointwise(fe::PointwiseMode_t::ADD));
        if (product_.epilogue == Epilogue::bias) return sum;
        return graph_.pointwise(sum, pointwise(fe::PointwiseMode_t::RELU_FWD));
      }
      case Epilogue::relu_backward: {
        const Tensor rectified = add_tensor(graph_, x_, uid_rectified);
        return graph_.pointwise(plain, rectified, pointwise(fe::PointwiseMode_t::RELU_BWD));
      }
      case Epilogue::kept: return graph_.pointwise(plain, pointwise(fe::PointwiseMode_t::IDENTITY));
    }
    return plain;
  }

  fe::graph::Graph& graph_;
  const Product& product_;
  const ConvProblem& problem_ = product_.problem;
  Dimensions x_ = channels_last(problem_.n_samples, problem_.n_in, problem_.height, problem_.width);
  Dimensions w_ = channels_last(problem_.n_out, problem_.n_in, problem_.kernel, problem_.kernel);
  Dimensions y_ = channels_last(problem_.n_samples, problem_.n_out, problem_.height_out(), problem_.width_out());
};

// "eng62" of "eng62_k2=0_k13=1".
std::string engine_of(const std::string& plan) { return plan.substr(0, plan.find('_')); }

// Older frontends also store the graph, and warm up a stored plan.
void store_candidate(const auto& graph, std::vector<std::uint8_t>& data) {
  if constexpr (requires { graph.serialize(data, false); })
    check(graph.serialize(data, false), "cannot store a plan");
  else
    check(graph.serialize(data), "cannot store a plan");
}
fe::error_t restore_candidate(auto& graph, cudnnHandle_t handle, const std::vector<std::uint8_t>& data) {
  if constexpr (requires { graph.deserialize(handle, data, false, false); })
    return graph.deserialize(handle, data, false, false);
  else
    return graph.deserialize(handle, data);
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
int GpuModel::architecture() const noexcept { return properties_->architecture; }
GpuModel::~GpuModel() = default;
GpuModel::GpuModel(GpuModel&&) noexcept = default;
GpuModel& GpuModel::operator=(GpuModel&&) noexcept = default;

PlanSearch::PlanSearch(const Product& product, core::DType type, const GpuModel* gpu, cudnnHandle_t handle) {
  graph_->set_io_data_type(data_type(type))
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  if (gpu != nullptr) set_gpu(*graph_, *gpu);
  ProductGraph{*graph_, product}.add();
  check(graph_->validate(), "does not accept a convolution");
  check(gpu != nullptr ? graph_->build_operation_graph() : graph_->build_operation_graph(handle),
        "cannot build a convolution");
}

void PlanSearch::set_gpu(fe::graph::Graph& graph, const GpuModel& gpu) {
  graph.set_device_properties(gpu.properties_->of_cudnn);
  graph.set_sm_version(gpu.properties_->architecture);
}

std::vector<ConvPlan> PlanSearch::find(const PlanFilter& filter) {
  std::vector<ConvPlan> plans;
  if (graph_->create_execution_plans({fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}).is_bad()) return plans;
  const std::int64_t n_of_heuristics = graph_->get_execution_plan_count();
  if (filter.has_all_engines) add_engines(n_of_heuristics);
  // Some of these engines compute float32 results from inputs in float16, whose range is smaller.
  graph_->deselect_numeric_notes(
      {fe::NumericalNote_t::REDUCED_PRECISION_REDUCTION, fe::NumericalNote_t::DOWN_CONVERT_INPUTS});
  if (filter.is_deterministic) graph_->deselect_numeric_notes({fe::NumericalNote_t::NONDETERMINISTIC});
  graph_->deselect_workspace_greater_than(static_cast<std::int64_t>(filter.most_workspace.value));
  std::size_t n_compiled = 0;
  const std::int64_t n_offered = graph_->get_execution_plan_count();
  const auto consider = [&](std::int64_t i, bool compiles) {
    if (i < n_of_heuristics && plans.size() - n_compiled >= filter.most) return;
    if (compiles && n_compiled == filter.most_compiled) return;
    if (filter.builds && graph_->build_plan_at_index(i).is_bad()) return;
    const auto workspace = filter.builds ? static_cast<std::uint64_t>(graph_->get_workspace_size_plan_at_index(i)) : 0;
    if (workspace > filter.most_workspace.value) return;
    plans.push_back({name(i), core::Bytes{workspace}, compiles, i, i < n_of_heuristics});
    if (compiles) ++n_compiled;
  };
  for (const bool is_second_look : {false, true}) {
    if (is_second_look && !(filter.prefers_ready && plans.empty())) break;
    for (std::int64_t i = 0; i < n_offered; ++i) {
      const bool compiles = is_compiled(i);
      if (!filter.prefers_ready || compiles == is_second_look) consider(i, compiles);
    }
  }
  return plans;
}

// Adds engines that the heuristics do not list, with their default settings.
void PlanSearch::add_engines(std::int64_t n_of_heuristics) {
  // Older frontends confuse the notes of plans once a plan is added.
  if constexpr (CUDNN_FRONTEND_VERSION < 13200) return;
  std::set<std::string> known;
  for (std::int64_t i = 0; i < n_of_heuristics; ++i) known.insert(engine_of(name(i)));
  std::int64_t n_engines = 0;
  check(graph_->get_engine_count(n_engines), "does not count its engines");
  for (std::int64_t engine = 0; engine < n_engines; ++engine)
    if (!known.contains(fmt::format("eng{}", engine))) static_cast<void>(graph_->create_execution_plan(engine, {}));
}

CudnnGraph PlanSearch::take(const ConvPlan& plan) {
  check(graph_->build_plan_at_index(plan.index), "does not build a plan again");
  return graph_;
}

std::vector<std::byte> PlanSearch::store(const ConvPlan& plan) {
  std::vector<std::uint8_t> data;
  store_candidate(*take(plan), data);
  const auto bytes = std::as_bytes(std::span{data});
  return {bytes.begin(), bytes.end()};
}

CudnnGraph PlanSearch::restore(std::span<const std::byte> stored, const GpuModel* gpu, cudnnHandle_t handle) try {
  std::vector<std::uint8_t> data;
  for (const std::byte byte : stored) data.push_back(std::to_integer<std::uint8_t>(byte));
  auto graph = std::make_shared<fe::graph::Graph>();
  if (gpu != nullptr) set_gpu(*graph, *gpu);
  const fe::error_t status = gpu != nullptr ? graph->deserialize(data) : restore_candidate(*graph, handle, data);
  return status.is_good() ? graph : nullptr;
} catch (const std::exception&) {  // the JSON in it cannot be read
  return nullptr;
}

std::string PlanSearch::name(std::int64_t plan) const {
  std::string text;
  check(graph_->get_plan_name_at_index(plan, text), "does not name a plan");
  return text;
}

bool PlanSearch::is_compiled(std::int64_t plan) const {
  std::vector<fe::BehaviorNote_t> notes;
  check(graph_->get_behavior_notes_for_plan_at_index(plan, notes), "does not describe a plan");
  return std::ranges::find(notes, fe::BehaviorNote_t::RUNTIME_COMPILATION) != notes.end();
}

std::vector<ConvPlan> find_plans(const Product& product, core::DType type, const GpuModel& gpu,
                                 const PlanFilter& filter) {
  return PlanSearch{product, type, &gpu, nullptr}.find(filter);
}

}  // namespace lockstep::nn::cuda

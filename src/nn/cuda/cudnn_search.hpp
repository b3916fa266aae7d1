// Finds the plans that cuDNN has for a convolution, and makes one ready for execution.
// Invariant: a graph executes its candidate, cuDNN frontend's name for the plan that was built last.
// Used by the files cudnn_*.cpp here: includes headers of cuDNN.
#pragma once

#include <cudnn_frontend.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nn/cuda/cudnn_graph.hpp"

namespace lockstep::nn::cuda {

/// Identifies tensors to the code that provides memory; remains valid in stored plans.
enum Uid : std::int64_t { uid_x = 1, uid_w, uid_y, uid_bias, uid_rectified };

using CudnnGraph = std::shared_ptr<cudnn_frontend::graph::Graph>;

/// Throws core::Error (system) with cuDNN's message.
void check(cudnn_frontend::error_t status, const std::string& what);
void check(cudnnStatus_t status, const char* what);

/// A built graph and its plans, for a described GPU or for the GPU of a handle.
class PlanSearch {
 public:
  PlanSearch(const Product& product, core::DType type, const GpuModel* gpu, cudnnHandle_t handle);

  /// Call once.
  [[nodiscard]] std::vector<ConvPlan> find(const PlanFilter& filter);
  /// The graph with this plan as its candidate; all plans share the graph.
  [[nodiscard]] CudnnGraph take(const ConvPlan& plan);
  [[nodiscard]] std::vector<std::byte> store(const ConvPlan& plan);
  /// Restores the result of store() without a search; null if cuDNN rejects it.
  [[nodiscard]] static CudnnGraph restore(std::span<const std::byte> stored, const GpuModel* gpu, cudnnHandle_t handle);

 private:
  static void set_gpu(cudnn_frontend::graph::Graph& graph, const GpuModel& gpu);
  void add_engines(std::int64_t n_of_heuristics);
  [[nodiscard]] std::string name(std::int64_t plan) const;
  [[nodiscard]] bool is_compiled(std::int64_t plan) const;

  CudnnGraph graph_ = std::make_shared<cudnn_frontend::graph::Graph>();
};

}  // namespace lockstep::nn::cuda

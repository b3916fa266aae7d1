// The plans that cuDNN has for a convolution, one of them ready for execution.
// Invariant: a graph is executed by its candidate, which is cuDNN frontend's name for the plan built last.
// Used by the files cudnn_*.cpp here: includes headers of cuDNN.
#pragma once

#include <cudnn_frontend.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nn/cuda/cudnn_graph.hpp"

namespace lockstep::nn::cuda {

/// Names of tensors for those who bring the memory; they survive a plan's being stored.
enum Uid : std::int64_t { uid_x = 1, uid_w, uid_y, uid_bias, uid_rectified };

using CudnnGraph = std::shared_ptr<cudnn_frontend::graph::Graph>;

/// Throws core::Error (system) in cuDNN's words.
void check(cudnn_frontend::error_t status, const std::string& what);
void check(cudnnStatus_t status, const char* what);

/// A graph that is built, and plans for it: for a GPU that is described, or for that of a handle.
class PlanSearch {
 public:
  PlanSearch(const Product& product, core::DType type, const GpuModel* gpu, cudnnHandle_t handle);

  /// Once.
  [[nodiscard]] std::vector<ConvPlan> find(const PlanFilter& filter);
  /// With this plan as its candidate; the same graph for all of them.
  [[nodiscard]] CudnnGraph take(const ConvPlan& plan);
  [[nodiscard]] std::vector<std::byte> store(const ConvPlan& plan);
  /// From what store() gave, with nothing else of the search; null if cuDNN does not take it.
  [[nodiscard]] static CudnnGraph restore(std::span<const std::byte> stored, const GpuModel* gpu, cudnnHandle_t handle);

 private:
  static void set_gpu(cudnn_frontend::graph::Graph& graph, const GpuModel& gpu);
  void add_engines(std::int64_t n_of_heuristics);
  [[nodiscard]] std::string name(std::int64_t plan) const;
  [[nodiscard]] bool is_compiled(std::int64_t plan) const;

  CudnnGraph graph_ = std::make_shared<cudnn_frontend::graph::Graph>();
};

}  // namespace lockstep::nn::cuda

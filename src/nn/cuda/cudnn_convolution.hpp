// One product computed by cuDNN, with a plan that was made for it.
// Invariant: enqueued by one thread at a time.
// Used by cudnn_convolutions.cpp: includes headers of cuDNN.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>

#include "nn/cuda/cudnn_search.hpp"

namespace lockstep::nn::cuda {

/// The product to plan, and the GPU: a described one, or that of a handle.
struct Wanted {
  Product product;
  core::DType type;
  const GpuModel* gpu;
  cudnnHandle_t handle;

  [[nodiscard]] std::string key() const {
    return fmt::format("{} {} {}", name(product), core::name(type), describe(product.problem));
  }
  [[nodiscard]] bool is_fused() const { return product.epilogue != Epilogue::none; }
  [[nodiscard]] std::size_t x_bytes() const { return core::size_of(type) * product.problem.x_elements(); }
  [[nodiscard]] std::size_t w_bytes() const {
    return (product.epilogue == Epilogue::kept ? sizeof(float) : core::size_of(type)) * product.problem.w_elements();
  }
  [[nodiscard]] std::size_t y_bytes() const { return core::size_of(type) * product.problem.y_elements(); }
  [[nodiscard]] PlanSearch search() const { return {product, type, gpu, handle}; }
};

/// `graph` holds its plan.
[[nodiscard]] std::unique_ptr<Convolution> make_cudnn_convolution(const Wanted& wanted, CudnnGraph graph);

}  // namespace lockstep::nn::cuda

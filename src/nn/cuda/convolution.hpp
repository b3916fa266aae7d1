// Convolutions as a library of the device has them; matrix products are those of images of one pixel.
// Invariant: planned once, for one problem and pass, and enqueued many times; allocates nothing then.
// Used by nn/cuda/layers; implemented for cuDNN, and by plain loops for tests.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "core/dtype.hpp"
#include "nn/cuda/conv_problem.hpp"
#include "nn/executor.hpp"
#include "runtime/device.hpp"

namespace lockstep::nn::cuda {

enum class ConvPass : std::uint8_t {
  forward,         ///< y from x and w
  input_gradient,  ///< dx, in the place of x, from dy and w
  weight_gradient  ///< dw, in the place of w, from dy and x
};

/// In the device's memory, of the type planned for: x {n, height, width, n_in}, w {n_out, kernel, kernel, n_in}, y {n,
/// height_out, width_out, n_out}.
struct ConvOperands {
  void* x = nullptr;
  void* w = nullptr;
  void* y = nullptr;
  std::byte* workspace = nullptr;  ///< of workspace_bytes()
};

class Convolution {
 public:
  virtual ~Convolution() = default;
  [[nodiscard]] virtual std::size_t workspace_bytes() const noexcept = 0;
  virtual void enqueue(runtime::Stream& stream, const ConvOperands& operands) = 0;
};

struct Product {
  ConvProblem problem{};
  ConvPass pass = ConvPass::forward;
};

class Convolutions {
 public:
  virtual ~Convolutions() = default;
  /// Finds out, for plan(), what is fastest; nothing if options.is_deterministic, or without options.agree, as of
  /// executors that are made to be looked at. Collective as that is: for products that all ranks have.
  virtual void choose(std::span<const Product> products, core::DType type, const ExecutorOptions& options) = 0;
  /// By what was chosen, if anything was. Throws core::Error (system) if the library has none.
  [[nodiscard]] virtual std::unique_ptr<Convolution> plan(const ConvProblem& problem, ConvPass pass,
                                                          core::DType type) = 0;
};

/// Of the accelerator in use; `n_threads` of the host choose. Throws core::Error (system) if this program is built
/// without a library for it.
[[nodiscard]] std::unique_ptr<Convolutions> open_convolutions(int n_threads);

/// Of a network in training, on batches of so many samples.
[[nodiscard]] std::vector<Product> products_of(const Network& network, std::uint64_t n_samples);

/// Whether a parameter before it, or of itself, has a gradient.
[[nodiscard]] bool needs_gradient(const Network& network, Value value);

template <class T>
constexpr core::DType dtype_of() {
  if constexpr (std::is_same_v<T, core::bfloat16>) return core::DType::bfloat16;
  if constexpr (std::is_same_v<T, core::float16>) return core::DType::float16;
  return core::DType::float32;
}

}  // namespace lockstep::nn::cuda

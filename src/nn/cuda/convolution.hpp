// Convolutions from a library of the device; matrix products are those of images of one pixel.
// Invariant: planned once, for one problem and pass, and enqueued many times; enqueueing allocates nothing.
// Used by nn/cuda/layers; implemented for cuDNN, and by plain loops for tests.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
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

/// The operation on each element of a result before it is written.
enum class Epilogue : std::uint8_t {
  none,
  bias,           ///< forward: one number for each channel is added
  bias_relu,      ///< and what is not positive becomes 0
  relu_backward,  ///< input_gradient: 0 where ReLU gave 0
  kept            ///< weight_gradient: in float32, alone or added to what is there
};

struct Product {
  ConvProblem problem{};
  ConvPass pass = ConvPass::forward;
  Epilogue epilogue = Epilogue::none;
};

/// Of the operation that computes it: "conv_bias_relu".
[[nodiscard]] std::string_view name(const Product& product) noexcept;

/// In the device's memory, of the type planned for: x {n, height, width, n_in}, w {n_out, kernel, kernel, n_in}, y {n,
/// height_out, width_out, n_out}.
struct ConvOperands {
  void* x = nullptr;
  void* w = nullptr;  ///< in float32 if it is `kept`
  void* y = nullptr;
  std::byte* workspace = nullptr;      ///< of workspace_bytes()
  const float* bias = nullptr;         ///< of n_out
  const void* rounded_bias = nullptr;  ///< the same in the type planned for, which products themselves add
  const void* rectified = nullptr;     ///< for relu_backward: what ReLU gave, as x
  bool adds = false;                   ///< if it is `kept`
};

class Convolution {
 public:
  virtual ~Convolution() = default;
  [[nodiscard]] virtual std::size_t workspace_bytes() const noexcept = 0;
  virtual void enqueue(runtime::Stream& stream, const ConvOperands& operands) = 0;
};

class Convolutions {
 public:
  virtual ~Convolutions() = default;
  /// Finds the fastest way, for plan(); nothing if options.is_deterministic, or without options.agree, as for executors
  /// that are only inspected. Collective like that: for products that all ranks have.
  virtual void choose(std::span<const Product> products, core::DType type, const ExecutorOptions& options) = 0;
  /// Uses the chosen way, if there is one. Throws core::Error (system) if the library has none.
  [[nodiscard]] virtual std::unique_ptr<Convolution> plan(const Product& product, core::DType type) = 0;
};

/// Of the accelerator in use; `n_threads` of the host choose; `tunes`: open_accelerated_device(). Throws core::Error
/// (usage) if this program is built without a library for it.
[[nodiscard]] std::unique_ptr<Convolutions> open_convolutions(int n_threads, bool tunes);

/// Of a node in training.
struct NodeProducts {
  Product forward{};
  Product weight_gradient{};
  std::optional<Product> input_gradient{};  ///< none where nothing of before learns from it
};

/// Nothing of a node that is none; `layouts`: layouts_of(network).
[[nodiscard]] std::optional<NodeProducts> products_of(const Network& network, std::size_t node,
                                                      std::span<const ValueLayout> layouts, std::uint64_t n_samples);
/// Of all nodes, on batches of so many samples.
[[nodiscard]] std::vector<Product> products_of(const Network& network, std::uint64_t n_samples);

template <class T>
constexpr core::DType dtype_of() {
  if constexpr (std::is_same_v<T, core::bfloat16>) return core::DType::bfloat16;
  if constexpr (std::is_same_v<T, core::float16>) return core::DType::float16;
  return core::DType::float32;
}

}  // namespace lockstep::nn::cuda

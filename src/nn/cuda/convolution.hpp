// The products of a network as a GPU computes them: convolutions by a library of the device, and matrix products as
// convolutions of images of one pixel.
// Invariant: products follow from the network, for any number of samples; channels are those of layout.hpp, including
// padding. A convolution is planned once, for one product, and enqueued many times; enqueueing allocates nothing.
// Used by ops/conv; implemented for cuDNN, and by plain loops for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/dtype.hpp"
#include "nn/cuda/kernels/fold.hpp"
#include "nn/cuda/layout.hpp"
#include "nn/executor.hpp"
#include "nn/graph/network.hpp"
#include "runtime/device.hpp"

namespace lockstep::nn::cuda {

/// Square kernels.
struct ConvProblem {
  std::string name;             ///< of the node
  std::uint64_t n_samples = 0;  ///< or rows of all samples
  std::uint64_t height = 1;     ///< of the input
  std::uint64_t width = 1;
  std::uint64_t n_in = 0;
  std::uint64_t n_out = 0;
  std::uint64_t kernel = 1;
  std::uint64_t stride = 1;
  std::uint64_t padding = 0;

  [[nodiscard]] std::uint64_t height_out() const noexcept { return (height + 2 * padding - kernel) / stride + 1; }
  [[nodiscard]] std::uint64_t width_out() const noexcept { return (width + 2 * padding - kernel) / stride + 1; }
  /// The sizes of inputs, weights and outputs.
  [[nodiscard]] std::size_t x_elements() const noexcept { return n_samples * height * width * n_in; }
  [[nodiscard]] std::size_t w_elements() const noexcept { return n_out * kernel * kernel * n_in; }
  [[nodiscard]] std::size_t y_elements() const noexcept { return n_samples * height_out() * width_out() * n_out; }
  [[nodiscard]] std::size_t n_elements() const noexcept { return x_elements() + w_elements() + y_elements(); }
};

/// Returns how kernels/fold.hpp computes a convolution of the network's input. Nothing unless it has a stride of 2, at
/// most four channels, images of an even size, and an input that needs no gradient.
[[nodiscard]] std::optional<Fold> fold_of(const Network& network, const Node& node);

/// Everything except the name: "256x56x56x64 by 64x3x3/1+1".
[[nodiscard]] std::string describe(const ConvProblem& problem);

enum class ConvPass : std::uint8_t {
  forward,         ///< y from x and w
  input_gradient,  ///< dx, in the place of x, from dy and w
  weight_gradient  ///< dw, in the place of w, from dy and x
};

/// The operation on each element of a result before it is written.
enum class Epilogue : std::uint8_t {
  none,
  bias,           ///< forward: adds one number per channel
  bias_relu,      ///< then sets what is not positive to 0
  relu_backward,  ///< input_gradient: 0 where ReLU gave 0
  kept            ///< weight_gradient: in float32, written or added
};

struct Product {
  ConvProblem problem{};
  ConvPass pass = ConvPass::forward;
  Epilogue epilogue = Epilogue::none;
};

/// The name of the operation that computes it: "conv_bias_relu".
[[nodiscard]] std::string_view name(const Product& product) noexcept;

/// In the device's memory, of the type planned for: x {n, height, width, n_in}, w {n_out, kernel, kernel, n_in}, y {n,
/// height_out, width_out, n_out}.
struct ConvOperands {
  void* x = nullptr;
  void* w = nullptr;  ///< in float32 if it is `kept`
  void* y = nullptr;
  std::byte* workspace = nullptr;      ///< of workspace_bytes()
  const float* bias = nullptr;         ///< of n_out
  const void* rounded_bias = nullptr;  ///< the same in the planned type, for products that add it themselves
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
  /// Finds the fastest way, for plan(). Does nothing if options.is_deterministic, or without options.agree, as for
  /// executors that are only inspected. Collective like options.agree, for products that all ranks have.
  virtual void choose(std::span<const Product> products, core::DType type, const ExecutorOptions& options) = 0;
  /// Uses the chosen way, if there is one. Throws core::Error (system) if the library has none.
  [[nodiscard]] virtual std::unique_ptr<Convolution> plan(const Product& product, core::DType type) = 0;
};

/// Opens the library of the accelerator in use. `n_threads` threads of the host choose plans; `tunes`: see
/// open_accelerated_device(). Throws core::Error (usage) if this program is built without such a library.
[[nodiscard]] std::unique_ptr<Convolutions> open_convolutions(int n_threads, bool tunes);

/// A product with an epilogue as two operations: `plain` computes the same product without it, and our own kernel uses
/// the result, rounded to its type.
[[nodiscard]] std::unique_ptr<Convolution> make_split(const Product& product, core::DType type,
                                                      std::unique_ptr<Convolution> plain);

/// The products of a node in training.
struct NodeProducts {
  Product forward{};
  Product weight_gradient{};
  std::optional<Product> input_gradient{};  ///< none if no earlier node needs it
};

/// Nothing if the node computes no product; `layouts`: layouts_of(network).
[[nodiscard]] std::optional<NodeProducts> products_of(const Network& network, std::size_t node,
                                                      std::span<const ValueLayout> layouts, std::uint64_t n_samples);
/// The products of all nodes, for batches of `n_samples`.
[[nodiscard]] std::vector<Product> products_of(const Network& network, std::uint64_t n_samples);

template <class T>
constexpr core::DType dtype_of() {
  if constexpr (std::is_same_v<T, core::bfloat16>) return core::DType::bfloat16;
  if constexpr (std::is_same_v<T, core::float16>) return core::DType::float16;
  return core::DType::float32;
}

}  // namespace lockstep::nn::cuda

// Convolutions as a library of the device has them; matrix products are those of images of one pixel.
// Invariant: planned once, for one problem and pass, and enqueued many times; allocates nothing then.
// Used by nn/cuda/layers; implemented for cuDNN, and by plain loops for tests.
#pragma once

#include <cstddef>
#include <memory>

#include "core/dtype.hpp"
#include "nn/cuda/conv_problem.hpp"
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
  runtime::DeviceSpan<std::byte> workspace{};
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
  /// Throws core::Error (system) if the library has none.
  [[nodiscard]] virtual std::unique_ptr<Convolution> plan(const ConvProblem& problem, ConvPass pass,
                                                          core::DType type) = 0;
};

/// Of the accelerator in use. Throws core::Error (system) if this program is built without a library for it.
[[nodiscard]] std::unique_ptr<Convolutions> open_convolutions();

}  // namespace lockstep::nn::cuda

#include <utility>

#include "core/error.hpp"
#include "nn/cuda/convolution.hpp"
#include "nn/cuda/kernels/elementwise.hpp"

namespace lockstep::nn::cuda {
namespace {

template <class T>
class SplitConvolution final : public Convolution {
 public:
  SplitConvolution(const Product& product, std::unique_ptr<Convolution> plain)
      : product_{product}, plain_{std::move(plain)} {}

  std::size_t workspace_bytes() const noexcept override {
    if (product_.epilogue != Epilogue::kept) return plain_->workspace_bytes();
    return rounded_offset() + product_.problem.w_elements() * sizeof(T);
  }

  void enqueue(runtime::Stream& stream, const ConvOperands& operands) override {
    const ConvProblem& problem = product_.problem;
    if (product_.epilogue == Epilogue::kept) return enqueue_kept(stream, operands);
    plain_->enqueue(stream, operands);
    if (product_.epilogue == Epilogue::relu_backward) {
      T* const x = static_cast<T*>(operands.x);
      return cuda::enqueue(
          stream, RectifyBackward<T>{problem.x_elements(), static_cast<const T*>(operands.rectified), x, nullptr, x});
    }
    T* const y = static_cast<T*>(operands.y);
    const bool has_relu = product_.epilogue == Epilogue::bias_relu;
    cuda::enqueue(stream, AddBias<T>{problem.y_elements(), static_cast<std::size_t>(problem.n_out), y, operands.bias,
                                     has_relu, y});
  }

 private:
  void enqueue_kept(runtime::Stream& stream, const ConvOperands& operands) {
    if (std::is_same_v<T, float> && !operands.adds) return plain_->enqueue(stream, operands);
    T* const rounded = reinterpret_cast<T*>(operands.workspace + rounded_offset());
    ConvOperands of_plain = operands;
    of_plain.w = rounded;
    of_plain.adds = false;
    plain_->enqueue(stream, of_plain);
    auto* const kept = static_cast<float*>(operands.w);
    cuda::enqueue(stream,
                  KeepGradient<T>{product_.problem.w_elements(), rounded, operands.adds ? kept : nullptr, kept});
  }

  /// Where the plain product's result is in the workspace.
  [[nodiscard]] std::size_t rounded_offset() const {
    constexpr std::size_t alignment = 256;
    return (plain_->workspace_bytes() + alignment - 1) / alignment * alignment;
  }

  Product product_;
  std::unique_ptr<Convolution> plain_;
};

}  // namespace

std::unique_ptr<Convolution> make_split(const Product& product, core::DType type, std::unique_ptr<Convolution> plain) {
  core::require(product.epilogue != Epilogue::none, "the product has an epilogue");
  if (type == core::DType::bfloat16)
    return std::make_unique<SplitConvolution<core::bfloat16>>(product, std::move(plain));
  if (type == core::DType::float16) return std::make_unique<SplitConvolution<core::float16>>(product, std::move(plain));
  return std::make_unique<SplitConvolution<float>>(product, std::move(plain));
}

}  // namespace lockstep::nn::cuda

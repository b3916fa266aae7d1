#include "nn/cuda/cudnn_convolution.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <array>
#include <unordered_map>
#include <utility>

#include "core/error.hpp"
#include "runtime/kernel/launch.hpp"

namespace lockstep::nn::cuda {
namespace {

class CudnnConvolution final : public Convolution {
 public:
  CudnnConvolution(Wanted wanted, CudnnGraph graph)
      : wanted_{std::move(wanted)},
        graph_{std::move(graph)},
        workspace_bytes_{static_cast<std::size_t>(graph_->get_workspace_size())} {}

  std::size_t workspace_bytes() const noexcept override { return workspace_bytes_; }

  void enqueue(runtime::Stream& stream, const ConvOperands& operands) override {
    using runtime::kernel::Region;
    core::require(!operands.adds, "a plan overwrites its result");
    const auto& [problem, pass, epilogue] = wanted_.product;
    const Region x{operands.x, wanted_.x_bytes()};
    const Region w{operands.w, wanted_.w_bytes()};
    const Region y{operands.y, wanted_.y_bytes()};
    const Region workspace{operands.workspace, workspace_bytes()};
    const Region other = epilogue == Epilogue::relu_backward
                             ? Region{operands.rectified, wanted_.x_bytes()}
                             : Region{operands.rounded_bias, problem.n_out * core::size_of(wanted_.type)};
    const bool has_other = wanted_.is_fused() && epilogue != Epilogue::kept;
    const std::array<Region, 3> reads{pass == ConvPass::input_gradient ? y : x,
                                      pass == ConvPass::weight_gradient ? y : w, other};
    const std::array<Region, 2> writes{pass == ConvPass::forward          ? y
                                       : pass == ConvPass::input_gradient ? x
                                                                          : w,
                                       workspace};
    const Body body{this, operands};
    stream.enqueue({.name = name(wanted_.product),
                    .reads = std::span{reads}.first(has_other ? 3 : 2),
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
    cudnnHandle_t handle = self->wanted_.handle;
    check(cudnnSetStream(handle, static_cast<cudaStream_t>(stream)), "does not take a stream");
    self->pointers_[uid_x] = operands.x;
    self->pointers_[uid_w] = operands.w;
    self->pointers_[uid_y] = operands.y;
    const Product& product = self->wanted_.product;
    if (product.pass == ConvPass::forward && self->wanted_.is_fused())
      self->pointers_[uid_bias] = const_cast<void*>(operands.rounded_bias);
    if (product.epilogue == Epilogue::relu_backward)
      self->pointers_[uid_rectified] = const_cast<void*>(operands.rectified);
    check(self->graph_->execute(handle, self->pointers_, operands.workspace),
          fmt::format("cannot compute {} of {}", name(product), product.problem.name));
    return 0;
  }

  Wanted wanted_;
  CudnnGraph graph_;
  std::size_t workspace_bytes_;
  std::unordered_map<std::int64_t, void*> pointers_{};
};

}  // namespace

std::unique_ptr<Convolution> make_cudnn_convolution(const Wanted& wanted, CudnnGraph graph) {
  return std::make_unique<CudnnConvolution>(wanted, std::move(graph));
}

}  // namespace lockstep::nn::cuda

// Convolutions by the plainest loops, as operations of a stream: where there is no library to compute them.
// Invariant: added up in double, rounded once.
// Used by tests of nn/cuda.
#pragma once

#include "nn/cuda/convolution.hpp"
#include "runtime/kernel/launch.hpp"

namespace lockstep::test {

/// One element of what a pass computes, of `x`, `w` and `y` as ConvOperands has them.
template <class T>
struct PlainConvolution {
  nn::cuda::ConvPass pass;
  std::size_t n, height, width, n_in, n_out, kernel, stride, padding, height_out, width_out;
  T* x;
  T* w;
  T* y;

  [[nodiscard]] std::size_t n_x() const { return n * height * width * n_in; }
  [[nodiscard]] std::size_t n_w() const { return n_out * kernel * kernel * n_in; }
  [[nodiscard]] std::size_t n_y() const { return n * height_out * width_out * n_out; }

  /// visit(row, column) of the input that position (y, x) of the output reads at place (i, j) of the kernel, if any.
  template <class F>
  void at(std::size_t row, std::size_t column, std::size_t i, std::size_t j, const F& visit) const {
    const std::size_t r = row * stride + i, c = column * stride + j;
    if (r >= padding && r - padding < height && c >= padding && c - padding < width) visit(r - padding, c - padding);
  }
  double value(const T* of, std::size_t i) const { return static_cast<double>(runtime::kernel::to_float(of[i])); }
  std::size_t of_x(std::size_t s, std::size_t r, std::size_t c, std::size_t k) const {
    return ((s * height + r) * width + c) * n_in + k;
  }
  std::size_t of_w(std::size_t o, std::size_t i, std::size_t j, std::size_t k) const {
    return ((o * kernel + i) * kernel + j) * n_in + k;
  }
  std::size_t of_y(std::size_t s, std::size_t r, std::size_t c, std::size_t o) const {
    return ((s * height_out + r) * width_out + c) * n_out + o;
  }

  /// What the input channels at one place have to do with one output channel.
  void add_channels(double* sums, std::size_t in_x, std::size_t in_w, std::size_t in_y) const {
    if (pass == nn::cuda::ConvPass::forward) {
      double sum = 0;
      for (std::size_t k = 0; k < n_in; ++k) sum += value(x, in_x + k) * value(w, in_w + k);
      sums[in_y] += sum;
      return;
    }
    const double gradient = value(y, in_y);
    const bool is_input = pass == nn::cuda::ConvPass::input_gradient;
    const T* const factor = is_input ? w + in_w : x + in_x;
    double* const sum = sums + (is_input ? in_x : in_w);
    for (std::size_t k = 0; k < n_in; ++k) sum[k] += gradient * value(factor, k);
  }

  void operator()(std::size_t at_once) const {
    if (at_once > 0) return;  // one thread does all
    std::vector<double> sums(pass == nn::cuda::ConvPass::forward          ? n_y()
                             : pass == nn::cuda::ConvPass::input_gradient ? n_x()
                                                                          : n_w());
    for (std::size_t s = 0; s < n; ++s)
      for (std::size_t row = 0; row < height_out; ++row)
        for (std::size_t column = 0; column < width_out; ++column)
          for (std::size_t i = 0; i < kernel; ++i)
            for (std::size_t j = 0; j < kernel; ++j)
              at(row, column, i, j, [&](std::size_t r, std::size_t c) {
                for (std::size_t o = 0; o < n_out; ++o)
                  add_channels(sums.data(), of_x(s, r, c, 0), of_w(o, i, j, 0), of_y(s, row, column, o));
              });
    T* const out = pass == nn::cuda::ConvPass::forward ? y : pass == nn::cuda::ConvPass::input_gradient ? x : w;
    for (std::size_t i = 0; i < sums.size(); ++i) out[i] = runtime::kernel::round_to<T>(static_cast<float>(sums[i]));
  }
};

class PlainConvolutions final : public nn::cuda::Convolutions {
 public:
  void choose(std::span<const nn::cuda::Product>, core::DType, const nn::ExecutorOptions&) override {}
  std::unique_ptr<nn::cuda::Convolution> plan(const nn::cuda::ConvProblem& problem, nn::cuda::ConvPass pass,
                                              core::DType type) override {
    if (type == core::DType::bfloat16) return std::make_unique<Planned<core::bfloat16>>(problem, pass);
    if (type == core::DType::float16) return std::make_unique<Planned<core::float16>>(problem, pass);
    return std::make_unique<Planned<float>>(problem, pass);
  }

 private:
  template <class T>
  class Planned final : public nn::cuda::Convolution {
   public:
    Planned(const nn::cuda::ConvProblem& p, nn::cuda::ConvPass pass)
        : body_{pass,     p.n_samples, p.height,       p.width,       p.n_in,  p.n_out, p.kernel,
                p.stride, p.padding,   p.height_out(), p.width_out(), nullptr, nullptr, nullptr} {}

    std::size_t workspace_bytes() const noexcept override { return 256; }  // to be seen to be shared
    void enqueue(runtime::Stream& stream, const nn::cuda::ConvOperands& operands) override {
      using runtime::kernel::region;
      PlainConvolution<T> body = body_;
      body.x = static_cast<T*>(operands.x);
      body.w = static_cast<T*>(operands.w);
      body.y = static_cast<T*>(operands.y);
      const auto x = region(body.x, body.n_x()), w = region(body.w, body.n_w()), y = region(body.y, body.n_y());
      const auto scratch = region(operands.workspace, workspace_bytes());
      const bool is_forward = body.pass == nn::cuda::ConvPass::forward;
      const bool is_input = body.pass == nn::cuda::ConvPass::input_gradient;
      runtime::kernel::for_each(stream,
                                is_forward ? "conv"
                                : is_input ? "conv_input_gradient"
                                           : "conv_weight_gradient",
                                1, {is_input ? y : x, is_forward || is_input ? w : y},
                                {is_forward ? y
                                 : is_input ? x
                                            : w,
                                 scratch},
                                body);
    }

   private:
    PlainConvolution<T> body_;
  };
};

}  // namespace lockstep::test

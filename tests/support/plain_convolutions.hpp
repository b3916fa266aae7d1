// Convolutions by the plainest loops, as operations of a stream: used without a library that computes them.
// Invariant: added up in double, rounded once.
// Used by tests of nn/cuda.
#pragma once

#include "core/error.hpp"
#include "nn/cuda/convolution.hpp"
#include "runtime/kernel/launch.hpp"

namespace lockstep::test {

/// Computes one element of a pass's result; `x`, `w` and `y` are as in ConvOperands.
template <class T>
struct PlainConvolution {
  nn::cuda::ConvPass pass;
  std::size_t n, height, width, n_in, n_out, kernel, stride, padding, height_out, width_out;
  T* x;
  T* w;
  T* y;
  nn::cuda::Epilogue epilogue = nn::cuda::Epilogue::none;
  const T* bias = nullptr;
  const T* rectified = nullptr;
  float* kept = nullptr;
  bool adds = false;

  [[nodiscard]] std::size_t n_x() const { return n * height * width * n_in; }
  [[nodiscard]] std::size_t n_w() const { return n_out * kernel * kernel * n_in; }
  [[nodiscard]] std::size_t n_y() const { return n * height_out * width_out * n_out; }

  /// visit(row, column) for the input that position (y, x) of the output reads at place (i, j) of the kernel, if any.
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

  /// Operands as double: each element is converted once, because that takes longer than its products.
  struct Wide {
    std::vector<double> x, w, y;
  };
  [[nodiscard]] Wide widened() const {
    const auto copy = [this](const T* of, std::size_t n_elements, nn::cuda::ConvPass writer) {
      std::vector<double> wide(pass == writer ? 0 : n_elements);
      for (std::size_t i = 0; i < wide.size(); ++i) wide[i] = value(of, i);
      return wide;
    };
    return {.x = copy(x, n_x(), nn::cuda::ConvPass::input_gradient),
            .w = copy(w, n_w(), nn::cuda::ConvPass::weight_gradient),
            .y = copy(y, n_y(), nn::cuda::ConvPass::forward)};
  }

  /// Adds the contribution of the input channels at one place to one output channel, or the reverse.
  void add_channels(const Wide& wide, double* sums, std::size_t in_x, std::size_t in_w, std::size_t in_y) const {
    if (pass == nn::cuda::ConvPass::forward) {
      const double* const at_x = wide.x.data() + in_x;
      const double* const at_w = wide.w.data() + in_w;
      double sum = 0;
      for (std::size_t k = 0; k < n_in; ++k) sum += at_x[k] * at_w[k];
      sums[in_y] += sum;
      return;
    }
    const double gradient = wide.y[in_y];
    const bool is_input = pass == nn::cuda::ConvPass::input_gradient;
    const double* const factor = is_input ? wide.w.data() + in_w : wide.x.data() + in_x;
    double* const sum = sums + (is_input ? in_x : in_w);
    for (std::size_t k = 0; k < n_in; ++k) sum[k] += gradient * factor[k];
  }

  void operator()(std::size_t at_once) const {
    if (at_once > 0) return;  // one thread does all
    const Wide wide = widened();
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
                  add_channels(wide, sums.data(), of_x(s, r, c, 0), of_w(o, i, j, 0), of_y(s, row, column, o));
              });
    T* const out = pass == nn::cuda::ConvPass::forward ? y : pass == nn::cuda::ConvPass::input_gradient ? x : w;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      if (kept != nullptr)
        kept[i] = (adds ? kept[i] : 0) + static_cast<float>(sums[i]);
      else
        out[i] = runtime::kernel::round_to<T>(finished(static_cast<float>(sums[i]), i));
    }
  }

  [[nodiscard]] float finished(float sum, std::size_t i) const {
    using nn::cuda::Epilogue;
    if (epilogue == Epilogue::relu_backward) return value(rectified, i) <= 0 ? 0 : sum;
    if (epilogue != Epilogue::bias && epilogue != Epilogue::bias_relu) return sum;
    sum += runtime::kernel::to_float(bias[i % n_out]);
    return epilogue == Epilogue::bias_relu && sum <= 0 ? 0 : sum;
  }
};

class PlainConvolutions final : public nn::cuda::Convolutions {
 public:
  /// `fuses`: an epilogue is part of its product's operation, not our own operation after it.
  explicit PlainConvolutions(bool fuses = false) : fuses_{fuses} {}

  void choose(std::span<const nn::cuda::Product>, core::DType, const nn::ExecutorOptions&) override {}
  std::unique_ptr<nn::cuda::Convolution> plan(const nn::cuda::Product& product, core::DType type) override {
    if (product.epilogue != nn::cuda::Epilogue::none && !fuses_) {
      nn::cuda::Product plain = product;
      plain.epilogue = nn::cuda::Epilogue::none;
      return nn::cuda::make_split(product, type, plan(plain, type));
    }
    if (type == core::DType::bfloat16) return std::make_unique<Planned<core::bfloat16>>(product);
    if (type == core::DType::float16) return std::make_unique<Planned<core::float16>>(product);
    return std::make_unique<Planned<float>>(product);
  }

 private:
  template <class T>
  class Planned final : public nn::cuda::Convolution {
   public:
    explicit Planned(const nn::cuda::Product& product) : product_{product} {}

    std::size_t workspace_bytes() const noexcept override { return 256; }  // so that tests see that it is shared
    void enqueue(runtime::Stream& stream, const nn::cuda::ConvOperands& operands) override {
      using nn::cuda::Epilogue;
      using runtime::kernel::region;
      const auto& [p, pass, epilogue] = product_;
      core::require(!operands.adds || epilogue == Epilogue::kept, "a plain product is written");
      PlainConvolution<T> body{pass,
                               p.n_samples,
                               p.height,
                               p.width,
                               p.n_in,
                               p.n_out,
                               p.kernel,
                               p.stride,
                               p.padding,
                               p.height_out(),
                               p.width_out(),
                               static_cast<T*>(operands.x),
                               static_cast<T*>(operands.w),
                               static_cast<T*>(operands.y)};
      body.epilogue = epilogue;
      body.bias = static_cast<const T*>(operands.rounded_bias);
      body.rectified = static_cast<const T*>(operands.rectified);
      body.adds = operands.adds;
      if (epilogue == Epilogue::kept) body.kept = static_cast<float*>(operands.w);
      const auto x = region(body.x, body.n_x()), y = region(body.y, body.n_y());
      const auto w = body.kept != nullptr ? region(body.kept, body.n_w()) : region(body.w, body.n_w());
      const auto scratch = region(operands.workspace, workspace_bytes());
      const bool is_forward = pass == nn::cuda::ConvPass::forward;
      const bool is_input = pass == nn::cuda::ConvPass::input_gradient;
      const auto first = is_input ? y : x, second = is_forward || is_input ? w : y;
      const auto result = is_forward ? y : is_input ? x : w;
      const auto run = [&](std::initializer_list<runtime::kernel::Region> reads) {
        runtime::kernel::for_each(stream, name(product_), 1, reads, {result, scratch}, body);
      };
      switch (epilogue) {
        case Epilogue::none: return run({first, second});
        case Epilogue::bias:
        case Epilogue::bias_relu: return run({first, second, region(body.bias, p.n_out)});
        case Epilogue::relu_backward: return run({first, second, region(body.rectified, body.n_x())});
        case Epilogue::kept: return body.adds ? run({first, second, result}) : run({first, second});
      }
    }

   private:
    nn::cuda::Product product_;
  };

  bool fuses_;
};

}  // namespace lockstep::test

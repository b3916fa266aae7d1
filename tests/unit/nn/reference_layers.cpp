#include "unit/nn/reference_layers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <variant>

#include "core/error.hpp"

namespace lockstep::nn {
namespace {

struct Window {
  std::uint64_t kernel;
  std::uint64_t stride;
  std::uint64_t padding;
};

/// The outputs, [first, second), for which element `k` of the window is on one of `n_in` pixels.
std::pair<std::uint64_t, std::uint64_t> inside(const Window& window, std::uint64_t k, std::uint64_t n_in,
                                               std::uint64_t n_out) {
  const auto divide_up = [&](std::uint64_t n) { return (n + window.stride - 1) / window.stride; };
  const std::uint64_t first = k < window.padding ? divide_up(window.padding - k) : 0;
  const std::uint64_t end = k < n_in + window.padding ? divide_up(n_in + window.padding - k) : 0;
  return {first, std::min(n_out, end)};
}

/// Calls f(i, j, k) for each pixel i of an output image and each pixel j of the input under element k of its window.
template <class F>
void slide(const Shape& in, const Shape& out, const Window& window, F&& f) {
  for (std::uint64_t ky = 0; ky < window.kernel; ++ky)
    for (std::uint64_t kx = 0; kx < window.kernel; ++kx) {
      const auto [top, bottom] = inside(window, ky, in[1], out[1]);
      const auto [left, right] = inside(window, kx, in[2], out[2]);
      for (std::uint64_t oy = top; oy < bottom; ++oy)
        for (std::uint64_t ox = left; ox < right; ++ox) {
          const std::uint64_t y = oy * window.stride + ky - window.padding;
          const std::uint64_t x = ox * window.stride + kx - window.padding;
          f(oy * out[2] + ox, y * in[2] + x, ky * window.kernel + kx);
        }
    }
}

std::uint64_t n_pixels(const Shape& image) { return image[1] * image[2]; }

/// dy, or its remainder before a ReLU.
Tensor behind_relu(const NodePass& pass, bool has_relu) {
  Tensor dy = *pass.dy;
  if (has_relu)
    for (std::size_t i = 0; i < dy.size(); ++i)
      if ((*pass.y)[i] <= 0) dy[i] = 0;
  return dy;
}

void apply_relu(Tensor& y) {
  for (double& value : y) value = value < 0 ? 0 : value;
}

void forward(const Input&, const NodePass& pass) { *pass.y = pass.batch.x; }
void backward(const Input&, const NodePass&) {}

void forward(const Ids&, const NodePass& pass) {
  std::transform(pass.batch.ids.begin(), pass.batch.ids.end(), pass.y->begin(),
                 [](std::int64_t id) { return static_cast<double>(id); });
}
void backward(const Ids&, const NodePass&) {}

void forward(const Linear& linear, const NodePass& pass) {
  const std::uint64_t n_in = pass.shapes[0].back(), n_rows = pass.x[0]->size() / n_in;
  const Tensor &x = *pass.x[0], &w = *pass.parameters[0];
  for (std::uint64_t s = 0; s < n_rows; ++s)
    for (std::uint64_t o = 0; o < linear.n_out; ++o) {
      double sum = linear.has_bias ? (*pass.parameters[1])[o] : 0;
      for (std::uint64_t i = 0; i < n_in; ++i) sum += w[o * n_in + i] * x[s * n_in + i];
      (*pass.y)[s * linear.n_out + o] = sum;
    }
}

void backward(const Linear& linear, const NodePass& pass) {
  const std::uint64_t n_in = pass.shapes[0].back(), n_rows = pass.x[0]->size() / n_in;
  const Tensor &x = *pass.x[0], &w = *pass.parameters[0];
  for (std::uint64_t s = 0; s < n_rows; ++s)
    for (std::uint64_t o = 0; o < linear.n_out; ++o) {
      const double dy = (*pass.dy)[s * linear.n_out + o];
      if (linear.has_bias) (*pass.d_parameters[1])[o] += dy;
      for (std::uint64_t i = 0; i < n_in; ++i) {
        (*pass.d_parameters[0])[o * n_in + i] += dy * x[s * n_in + i];
        (*pass.dx[0])[s * n_in + i] += dy * w[o * n_in + i];
      }
    }
}

/// Calls f(places of an image in x, in y, of a kernel in w, output channel) for each pair of channels of each sample.
template <class F>
void for_each_kernel(const Conv& conv, const NodePass& pass, F&& f) {
  const std::uint64_t n_in = pass.shapes[0][0], area = conv.kernel * conv.kernel;
  for (std::uint64_t s = 0; s < pass.batch.n; ++s)
    for (std::uint64_t o = 0; o < conv.n_out; ++o)
      for (std::uint64_t c = 0; c < n_in; ++c)
        f((s * n_in + c) * n_pixels(pass.shapes[0]), (s * conv.n_out + o) * n_pixels(pass.node.output),
          (o * n_in + c) * area);
}

void forward(const Conv& conv, const NodePass& pass) {
  const std::uint64_t n = n_pixels(pass.node.output);
  if (conv.has_bias)
    for (std::uint64_t i = 0; i < pass.y->size(); ++i) (*pass.y)[i] = (*pass.parameters[1])[i / n % conv.n_out];
  for_each_kernel(conv, pass, [&](std::uint64_t at_x, std::uint64_t at_y, std::uint64_t at_w) {
    const double *x = pass.x[0]->data() + at_x, *w = pass.parameters[0]->data() + at_w;
    double* y = pass.y->data() + at_y;
    slide(pass.shapes[0], pass.node.output, {conv.kernel, conv.stride, conv.padding},
          [&](auto i, auto j, auto k) { y[i] += w[k] * x[j]; });
  });
}

void backward(const Conv& conv, const NodePass& pass) {
  const std::uint64_t n = n_pixels(pass.node.output);
  if (conv.has_bias)
    for (std::uint64_t i = 0; i < pass.dy->size(); ++i) (*pass.d_parameters[1])[i / n % conv.n_out] += (*pass.dy)[i];
  for_each_kernel(conv, pass, [&](std::uint64_t at_x, std::uint64_t at_y, std::uint64_t at_w) {
    const double *x = pass.x[0]->data() + at_x, *w = pass.parameters[0]->data() + at_w;
    const double* dy = pass.dy->data() + at_y;
    double *dx = pass.dx[0]->data() + at_x, *dw = pass.d_parameters[0]->data() + at_w;
    slide(pass.shapes[0], pass.node.output, {conv.kernel, conv.stride, conv.padding}, [&](auto i, auto j, auto k) {
      dx[j] += w[k] * dy[i];
      dw[k] += x[j] * dy[i];
    });
  });
}

/// A channel of a group of samples.
struct Group {
  std::uint64_t begin, end;  ///< samples
  std::uint64_t channel, n_channels, n_pixels;

  [[nodiscard]] double n() const { return static_cast<double>((end - begin) * n_pixels); }
  /// Calls f(place) for each of its elements.
  template <class F>
  void for_each(F&& f) const {
    for (std::uint64_t s = begin; s < end; ++s)
      for (std::uint64_t i = 0; i < n_pixels; ++i) f((s * n_channels + channel) * n_pixels + i);
  }
};

template <class F>
void for_each_group(const NodePass& pass, F&& f) {
  const Shape& image = pass.shapes[0];
  const std::uint64_t n = pass.batch.n, wanted = pass.options.bn_group;
  const std::uint64_t length = wanted == 0 || !pass.options.is_training ? n : wanted;
  for (std::uint64_t begin = 0; begin < n; begin += length)
    for (std::uint64_t c = 0; c < image[0]; ++c)
      f(Group{begin, std::min(n, begin + length), c, image[0], n_pixels(image)});
}

struct Moments {
  double mean = 0;
  double variance = 0;  ///< biased
};

Moments moments_of(const Tensor& x, const Group& group) {
  Moments moments;
  group.for_each([&](auto i) { moments.mean += x[i] / group.n(); });
  group.for_each([&](auto i) { moments.variance += (x[i] - moments.mean) * (x[i] - moments.mean) / group.n(); });
  return moments;
}

/// The unbiased variance of one value counts as 0, the biased one.
double unbiased(const Moments& moments, const Group& group) {
  return group.n() > 1 ? moments.variance * group.n() / (group.n() - 1) : moments.variance;
}

void forward(const BatchNorm& bn, const NodePass& pass) {
  const Tensor& x = *pass.x[0];
  Tensor &running_mean = *pass.statistics[0], &running_variance = *pass.statistics[1];
  const Tensor before_mean = running_mean, before_variance = running_variance;
  for_each_group(pass, [&](const Group& group) {
    const std::uint64_t c = group.channel;
    Moments moments{before_mean[c], before_variance[c]};
    if (pass.options.is_training) {
      moments = moments_of(x, group);
      const double share =
          bn.momentum * static_cast<double>(group.end - group.begin) / static_cast<double>(pass.batch.n);
      running_mean[c] += share * (moments.mean - before_mean[c]);
      running_variance[c] += share * (unbiased(moments, group) - before_variance[c]);
    }
    const double factor = (*pass.parameters[0])[c] / std::sqrt(moments.variance + bn.eps);
    group.for_each([&](auto i) { (*pass.y)[i] = (x[i] - moments.mean) * factor + (*pass.parameters[1])[c]; });
  });
  if (bn.has_relu) apply_relu(*pass.y);
}

void backward(const BatchNorm& bn, const NodePass& pass) {
  const Tensor& x = *pass.x[0];
  const Tensor dy = behind_relu(pass, bn.has_relu);
  for_each_group(pass, [&](const Group& group) {
    const std::uint64_t c = group.channel;
    const Moments moments = moments_of(x, group);
    const double inverse = 1 / std::sqrt(moments.variance + bn.eps);
    double d_weight = 0, d_bias = 0;
    group.for_each([&](auto i) {
      d_weight += dy[i] * (x[i] - moments.mean) * inverse;
      d_bias += dy[i];
    });
    (*pass.d_parameters[0])[c] += d_weight;
    (*pass.d_parameters[1])[c] += d_bias;
    group.for_each([&](auto i) {
      const double normal = (x[i] - moments.mean) * inverse;
      (*pass.dx[0])[i] += (*pass.parameters[0])[c] * inverse * (dy[i] - (d_bias + normal * d_weight) / group.n());
    });
  });
}

void forward(const Relu&, const NodePass& pass) {
  *pass.y = *pass.x[0];
  apply_relu(*pass.y);
}

void backward(const Relu&, const NodePass& pass) {
  const Tensor dy = behind_relu(pass, true);
  for (std::size_t i = 0; i < dy.size(); ++i) (*pass.dx[0])[i] += dy[i];
}

void forward(const Add& add, const NodePass& pass) {
  for (std::size_t i = 0; i < pass.y->size(); ++i) (*pass.y)[i] = (*pass.x[0])[i] + (*pass.x[1])[i];
  if (add.has_relu) apply_relu(*pass.y);
}

void backward(const Add& add, const NodePass& pass) {
  const Tensor dy = behind_relu(pass, add.has_relu);
  for (Tensor* dx : pass.dx)
    for (std::size_t i = 0; i < dy.size(); ++i) (*dx)[i] += dy[i];
}

/// The source of each output of one image: the first of the greatest in its window.
std::vector<std::uint64_t> greatest(const MaxPool& pool, const NodePass& pass, const double* x) {
  const Shape& out = pass.node.output;
  std::vector<std::uint64_t> from(n_pixels(out));
  std::vector<double> y(n_pixels(out), -std::numeric_limits<double>::infinity());
  std::vector<bool> is_seen(n_pixels(out), false);
  slide(pass.shapes[0], out, {pool.kernel, pool.stride, pool.padding}, [&](auto i, auto j, auto) {
    if (is_seen[i] && !(x[j] > y[i])) return;
    is_seen[i] = true;
    y[i] = x[j];
    from[i] = j;
  });
  return from;
}

/// Calls f(place in y, place in x) for each output.
template <class F>
void for_each_maximum(const MaxPool& pool, const NodePass& pass, F&& f) {
  const std::uint64_t n_in = n_pixels(pass.shapes[0]), n_out = n_pixels(pass.node.output);
  for (std::uint64_t image = 0; image < pass.batch.n * pass.shapes[0][0]; ++image) {
    const auto from = greatest(pool, pass, pass.x[0]->data() + image * n_in);
    for (std::uint64_t i = 0; i < n_out; ++i) f(image * n_out + i, image * n_in + from[i]);
  }
}

void forward(const MaxPool& pool, const NodePass& pass) {
  for_each_maximum(pool, pass, [&](auto i, auto j) { (*pass.y)[i] = (*pass.x[0])[j]; });
}

void backward(const MaxPool& pool, const NodePass& pass) {
  for_each_maximum(pool, pass, [&](auto i, auto j) { (*pass.dx[0])[j] += (*pass.dy)[i]; });
}

void forward(const GlobalAvgPool&, const NodePass& pass) {
  const std::uint64_t n = n_pixels(pass.shapes[0]);
  for (std::size_t i = 0; i < pass.x[0]->size(); ++i) (*pass.y)[i / n] += (*pass.x[0])[i] / static_cast<double>(n);
}

void backward(const GlobalAvgPool&, const NodePass& pass) {
  const std::uint64_t n = n_pixels(pass.shapes[0]);
  for (std::size_t i = 0; i < pass.dx[0]->size(); ++i) (*pass.dx[0])[i] += (*pass.dy)[i / n] / static_cast<double>(n);
}

void forward(const Flatten&, const NodePass& pass) { *pass.y = *pass.x[0]; }

void backward(const Flatten&, const NodePass& pass) {
  for (std::size_t i = 0; i < pass.dy->size(); ++i) (*pass.dx[0])[i] += (*pass.dy)[i];
}

double dropout_factor(const Dropout& dropout, const NodePass& pass, std::size_t i) {
  if (!pass.options.is_training) return 1;
  const std::uint64_t n = n_elements(pass.node.output);
  const bool is_kept = !pass.options.keeps || pass.options.keeps(pass.index, i / n, i % n);
  return is_kept ? 1 / (1 - dropout.probability) : 0;
}

void forward(const Dropout& dropout, const NodePass& pass) {
  for (std::size_t i = 0; i < pass.y->size(); ++i) (*pass.y)[i] = (*pass.x[0])[i] * dropout_factor(dropout, pass, i);
}

void backward(const Dropout& dropout, const NodePass& pass) {
  for (std::size_t i = 0; i < pass.y->size(); ++i) (*pass.dx[0])[i] += (*pass.dy)[i] * dropout_factor(dropout, pass, i);
}

/// Calls f(place in y, place in the table) for each output.
template <class F>
void for_each_lookup(const Embedding& embedding, const NodePass& pass, F&& f) {
  const std::uint64_t n_columns = pass.shapes[0][0];
  std::uint64_t out = 0;
  for (std::uint64_t i = 0; i < pass.batch.ids.size(); ++i) {
    if (embedding.column && i % n_columns != *embedding.column) continue;
    const auto row = static_cast<std::uint64_t>(pass.batch.ids[i]);
    core::require(row < embedding.n_rows, "an id is a row of its table");
    for (std::uint64_t k = 0; k < embedding.width; ++k) f(out++, row * embedding.width + k);
  }
}

void forward(const Embedding& embedding, const NodePass& pass) {
  for_each_lookup(embedding, pass, [&](auto i, auto j) { (*pass.y)[i] = (*pass.parameters[0])[j]; });
}

void backward(const Embedding& embedding, const NodePass& pass) {
  for_each_lookup(embedding, pass, [&](auto i, auto j) { (*pass.d_parameters[0])[j] += (*pass.dy)[i]; });
}

/// Calls f(place in y, input, place in it) for each output.
template <class F>
void for_each_part(const NodePass& pass, F&& f) {
  std::uint64_t offset = 0;
  for (std::size_t input = 0; input < pass.shapes.size(); ++input) {
    const std::uint64_t width = pass.shapes[input][0];
    for (std::uint64_t s = 0; s < pass.batch.n; ++s)
      for (std::uint64_t i = 0; i < width; ++i) f(s * pass.node.output[0] + offset + i, input, s * width + i);
    offset += width;
  }
}

void forward(const Concat&, const NodePass& pass) {
  for_each_part(pass, [&](auto i, auto input, auto j) { (*pass.y)[i] = (*pass.x[input])[j]; });
}

void backward(const Concat&, const NodePass& pass) {
  for_each_part(pass, [&](auto i, auto input, auto j) { (*pass.dx[input])[j] += (*pass.dy)[i]; });
}

void forward(const LogSoftmax&, const NodePass& pass) {
  const std::uint64_t n = pass.node.output.back();
  for (std::uint64_t s = 0; s < pass.y->size() / n; ++s) {
    const double* const x = pass.x[0]->data() + s * n;
    const double greatest = *std::max_element(x, x + n);
    double sum = 0;
    for (std::uint64_t i = 0; i < n; ++i) sum += std::exp(x[i] - greatest);
    for (std::uint64_t i = 0; i < n; ++i) (*pass.y)[s * n + i] = x[i] - greatest - std::log(sum);
  }
}

void backward(const LogSoftmax&, const NodePass& pass) {
  const std::uint64_t n = pass.node.output.back();
  for (std::uint64_t s = 0; s < pass.y->size() / n; ++s) {
    const std::uint64_t begin = s * n, end = begin + n;
    double sum = 0;
    for (std::uint64_t i = begin; i < end; ++i) sum += (*pass.dy)[i];
    for (std::uint64_t i = begin; i < end; ++i) (*pass.dx[0])[i] += (*pass.dy)[i] - std::exp((*pass.y)[i]) * sum;
  }
}

}  // namespace

void forward(const NodePass& pass) {
  pass.y->assign(pass.batch.n * n_elements(pass.node.output), 0);
  std::visit([&](const auto& layer) { forward(layer, pass); }, pass.node.layer);
}

void backward(const NodePass& pass) {
  std::visit([&](const auto& layer) { backward(layer, pass); }, pass.node.layer);
}

}  // namespace lockstep::nn

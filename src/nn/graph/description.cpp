#include "nn/graph/description.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <numeric>
#include <utility>

#include "core/error.hpp"

namespace lockstep::nn {
namespace {

/// "192 features", "3 rows of 64 features", "an image of shape 3x8x8".
std::string describe(const Shape& shape) {
  if (shape.size() == 1) return fmt::format("{} features", shape[0]);
  if (shape.size() == 2) return fmt::format("{} rows of {} features", shape[0], shape[1]);
  return fmt::format("an image of shape {}", to_string(shape));
}

}  // namespace

std::uint64_t n_elements(const Shape& shape) noexcept {
  return std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>{});
}

std::uint64_t n_sample_rows(const Shape& shape) noexcept { return shape.size() == 2 ? shape[0] : 1; }

std::string to_string(const Shape& shape) { return fmt::format("{}", fmt::join(shape, "x")); }

std::string as_text(double number) { return fmt::format("{}", number); }

const Shape& LayerInputs::image(std::size_t input) const {
  const Shape& in = numbers(input);
  if (in.size() != 3) refuse(describe(in), "an image: channels x height x width");
  return in;
}

const Shape& LayerInputs::features(std::size_t input) const {
  const Shape& in = numbers(input);
  if (in.size() == 2) refuse(describe(in), "features, without rows");
  return rows(input);
}

const Shape& LayerInputs::rows(std::size_t input) const {
  const Shape& in = numbers(input);
  if (in.size() > 2) refuse(describe(in), "features; flatten it first");
  return in;
}

const Shape& LayerInputs::numbers(std::size_t input) const {
  const auto& [shape, content] = values_[input];
  if (content == Content::ids)
    refuse(fmt::format("{} ids", shape[0]), "numbers; look the ids up in an embedding first");
  if (content == Content::log_probabilities) refuse("logarithms of probabilities", "only the loss after a log_softmax");
  return shape;
}

const Shape& LayerInputs::ids(std::size_t input) const {
  const auto& [shape, content] = values_[input];
  if (content != Content::ids) refuse(fmt::format("numbers of shape {}", to_string(shape)), "ids");
  return shape;
}

Shape LayerInputs::slide(std::uint64_t n_channels, std::uint64_t kernel, std::uint64_t stride,
                         std::uint64_t padding) const {
  const Shape& in = image();
  expect_some(kernel, "pixels in the kernel");
  expect_some(stride, "stride");
  const auto n_positions = [&](std::uint64_t n) {
    const std::uint64_t padded = n + 2 * padding;
    return padded < kernel ? 0 : (padded - kernel) / stride + 1;
  };
  Shape output{n_channels, n_positions(in[1]), n_positions(in[2])};
  if (output[1] == 0 || output[2] == 0) {
    refuse(fmt::format("image too small for the model: {}x{} pixels are left", in[1], in[2]),
           fmt::format("at least {0}x{0} pixels at this layer", kernel - 2 * padding));
  }
  return output;
}

void LayerInputs::expect_some(std::uint64_t n, const char* of_what) const {
  if (n == 0) refuse(fmt::format("no {}", of_what), "at least 1");
}

void LayerInputs::refuse(std::string what, std::string expected) const {
  core::fail_usage(
      {.what = std::move(what), .where = fmt::format("layer '{}'", node_), .expected = std::move(expected)});
}

}  // namespace lockstep::nn

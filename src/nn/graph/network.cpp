#include "nn/graph/network.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "core/error.hpp"

namespace lockstep::nn {
namespace {

[[noreturn]] void refuse(const std::string& node, std::string what, std::string expected) {
  core::fail_usage(
      {.what = std::move(what), .where = fmt::format("layer '{}'", node), .expected = std::move(expected)});
}

void expect_some(const std::string& node, std::uint64_t n, const char* of_what) {
  if (n == 0) refuse(node, fmt::format("no {}", of_what), "at least 1");
}

/// A square window that slides over an image.
struct Window {
  std::uint64_t kernel;
  std::uint64_t stride;
  std::uint64_t padding;
};

/// The output {channels, height, width} of the window on `image`.
Shape slide(const std::string& node, const Shape& image, std::uint64_t n_channels, const Window& window) {
  expect_some(node, window.kernel, "pixels in the kernel");
  expect_some(node, window.stride, "stride");
  const auto n_positions = [&](std::uint64_t n) {
    const std::uint64_t padded = n + 2 * window.padding;
    return padded < window.kernel ? 0 : (padded - window.kernel) / window.stride + 1;
  };
  Shape output{n_channels, n_positions(image[1]), n_positions(image[2])};
  if (output[1] == 0 || output[2] == 0) {
    refuse(node, fmt::format("image too small for the model: {}x{} pixels are left", image[1], image[2]),
           fmt::format("at least {0}x{0} pixels at this layer", window.kernel - 2 * window.padding));
  }
  return output;
}

std::string parameter_name(const std::string& node, const char* name) {
  return node.empty() ? name : fmt::format("{}.{}", node, name);
}

}  // namespace

std::uint64_t n_elements(const Shape& shape) noexcept {
  return std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>{});
}

std::string to_string(const Shape& shape) { return fmt::format("{}", fmt::join(shape, "x")); }

Value Network::input(Shape shape, Input layer) {
  if ((shape.size() != 1 && shape.size() != 3) || n_elements(shape) == 0)
    refuse("input", fmt::format("samples of shape '{}'", to_string(shape)), "features, or channels x height x width");
  core::require(!layer.is_pixels || shape.size() == 3, "an input of pixels has the shape of an image");
  return append("input", layer, {}, std::move(shape));
}

Value Network::ids(std::uint64_t n_columns) {
  expect_some("ids", n_columns, "ids per sample");
  return append("ids", Ids{}, {}, {n_columns});
}

Value Network::linear(const std::string& name, Value x, Linear layer) {
  const std::string node = name_for(name, "linear");
  const std::uint64_t n_in = features(x, node)[0];
  expect_some(node, layer.n_out, "outputs");
  const Value value = append(node, layer, {x}, {layer.n_out});
  add_parameter({parameter_name(name, "weight"), {layer.n_out, n_in}, Init::uniform_fan_in, n_in});
  if (layer.has_bias) add_parameter({parameter_name(name, "bias"), {layer.n_out}, Init::uniform_fan_in, n_in});
  return value;
}

Value Network::conv(const std::string& name, Value x, Conv layer, Init init) {
  const Shape& in = image(x, name);
  expect_some(name, layer.n_out, "output channels");
  const Shape weight{layer.n_out, in[0], layer.kernel, layer.kernel};
  const std::uint64_t area = layer.kernel * layer.kernel;
  const std::uint64_t fan_in = in[0] * area;
  const Value value =
      append(name, layer, {x}, slide(name, in, layer.n_out, {layer.kernel, layer.stride, layer.padding}));
  add_parameter({parameter_name(name, "weight"), weight, init,
                 init == Init::kaiming_normal_fan_out ? layer.n_out * area : fan_in});
  if (layer.has_bias) add_parameter({parameter_name(name, "bias"), {layer.n_out}, Init::uniform_fan_in, fan_in});
  return value;
}

Value Network::batch_norm(const std::string& name, Value x, BatchNorm layer) {
  const Shape& in = image(x, name);
  const std::uint64_t n_channels = in[0];
  const Value value = append(name, layer, {x}, in);
  add_parameter({parameter_name(name, "weight"), {n_channels}, Init::ones});
  add_parameter({parameter_name(name, "bias"), {n_channels}, Init::zeros});
  add_statistic({parameter_name(name, "running_mean"), n_channels, 0});
  add_statistic({parameter_name(name, "running_var"), n_channels, 1});
  return value;
}

Value Network::relu(Value x, const std::string& name) {
  const std::string node = name_for(name, "relu");
  return append(node, Relu{}, {x}, numbers(x, node));
}

Value Network::add(Value a, Value b, Add layer, const std::string& name) {
  const std::string node = name_for(name, "add");
  const Shape& left = numbers(a, node);
  const Shape& right = numbers(b, node);
  if (left != right)
    refuse(node, fmt::format("a sum of {} and {}", to_string(left), to_string(right)), "two values of one shape");
  return append(node, layer, {a, b}, left);
}

Value Network::max_pool(Value x, MaxPool layer, const std::string& name) {
  const std::string node = name_for(name, "max_pool");
  const Shape& in = image(x, node);
  if (2 * layer.padding > layer.kernel)
    refuse(node, fmt::format("padding {}", layer.padding), fmt::format("at most half of the kernel, {}", layer.kernel));
  return append(node, layer, {x}, slide(node, in, in[0], {layer.kernel, layer.stride, layer.padding}));
}

Value Network::global_avg_pool(Value x, const std::string& name) {
  const std::string node = name_for(name, "global_avg_pool");
  return append(node, GlobalAvgPool{}, {x}, {image(x, node)[0]});
}

Value Network::flatten(Value x, const std::string& name) {
  const std::string node = name_for(name, "flatten");
  return append(node, Flatten{}, {x}, {n_elements(image(x, node))});
}

Value Network::dropout(Value x, Dropout layer, const std::string& name) {
  const std::string node = name_for(name, "dropout");
  if (!(layer.probability >= 0 && layer.probability < 1))
    refuse(node, fmt::format("probability {}", layer.probability), "0 or more, less than 1");
  return append(node, layer, {x}, numbers(x, node));
}

Value Network::embedding(const std::string& name, Value ids, Embedding layer) {
  const Shape& columns = shape(ids);
  if (!std::holds_alternative<Ids>(nodes_[static_cast<std::size_t>(ids.node)].layer))
    refuse(name, fmt::format("numbers of shape {}", to_string(columns)), "ids");
  if (layer.column >= columns[0])
    refuse(name, fmt::format("column {} of the ids", layer.column), fmt::format("one of {} columns", columns[0]));
  expect_some(name, layer.n_rows, "rows");
  expect_some(name, layer.width, "elements in a row");
  const Value value = append(name, layer, {ids}, {layer.width});
  add_parameter({parameter_name(name, "weight"), {layer.n_rows, layer.width}, Init::normal});
  return value;
}

Value Network::concat(std::vector<Value> values, const std::string& name) {
  const std::string node = name_for(name, "concat");
  std::uint64_t n = 0;
  for (const Value value : values) n += features(value, node)[0];
  expect_some(node, n, "values");
  return append(node, Concat{}, std::move(values), {n});
}

Value Network::log_softmax(Value x, const std::string& name) {
  const std::string node = name_for(name, "log_softmax");
  return append(node, LogSoftmax{}, {x}, features(x, node));
}

const Shape& Network::output() const {
  core::require(!nodes_.empty(), "a network has nodes");
  return nodes_.back().output;
}

const Shape& Network::shape(Value value) const {
  core::require(value.node >= 0 && static_cast<std::size_t>(value.node) < nodes_.size(),
                "the value belongs to this network");
  return nodes_[static_cast<std::size_t>(value.node)].output;
}

std::uint64_t Network::n_multiply_adds() const {
  std::uint64_t n = 0;
  for (const Node& node : nodes_) n += n_multiply_adds(node);
  return n;
}

std::uint64_t Network::n_multiply_adds(const Node& node) const {
  if (!std::holds_alternative<Conv>(node.layer) && !std::holds_alternative<Linear>(node.layer)) return 0;
  const Shape& weight = parameters_[static_cast<std::size_t>(node.parameters.front())].shape;
  return n_elements(node.output) * (n_elements(weight) / weight[0]);
}

std::uint64_t Network::n_parameter_elements() const noexcept {
  return std::accumulate(parameters_.begin(), parameters_.end(), std::uint64_t{0},
                         [](std::uint64_t n, const Parameter& parameter) { return n + n_elements(parameter.shape); });
}

Value Network::append(std::string name, const Layer& layer, std::vector<Value> inputs, Shape output) {
  if (inputs.empty() != nodes_.empty())
    refuse(name, inputs.empty() ? "a second input" : "no input", "a network whose first node is its one input");
  if (std::any_of(nodes_.begin(), nodes_.end(), [&](const Node& node) { return node.name == name; }))
    refuse(name, "a name used twice", "a name of its own for each layer");
  nodes_.push_back({std::move(name), layer, std::move(inputs), std::move(output)});
  return {static_cast<int>(nodes_.size() - 1)};
}

void Network::add_parameter(Parameter parameter) {
  nodes_.back().parameters.push_back(static_cast<int>(parameters_.size()));
  parameters_.push_back(std::move(parameter));
}

void Network::add_statistic(Statistic statistic) {
  nodes_.back().statistics.push_back(static_cast<int>(statistics_.size()));
  statistics_.push_back(std::move(statistic));
}

std::string Network::name_for(const std::string& given, const std::string& kind) const {
  if (!given.empty()) return given;
  const auto is_taken = [&](const std::string& name) {
    return std::any_of(nodes_.begin(), nodes_.end(), [&](const Node& node) { return node.name == name; });
  };
  std::string name = kind;
  for (int i = 2; is_taken(name); ++i) name = fmt::format("{}{}", kind, i);
  return name;
}

const Shape& Network::image(Value x, const std::string& name) const {
  const Shape& in = numbers(x, name);
  if (in.size() != 3) refuse(name, fmt::format("{} features", to_string(in)), "an image: channels x height x width");
  return in;
}

const Shape& Network::features(Value x, const std::string& name) const {
  const Shape& in = numbers(x, name);
  if (in.size() != 1) refuse(name, fmt::format("an image of shape {}", to_string(in)), "features; flatten it first");
  return in;
}

const Shape& Network::numbers(Value x, const std::string& name) const {
  const Shape& in = shape(x);
  if (std::holds_alternative<Ids>(nodes_[static_cast<std::size_t>(x.node)].layer))
    refuse(name, fmt::format("{} ids", in[0]), "numbers; look the ids up in an embedding first");
  if (std::holds_alternative<LogSoftmax>(nodes_[static_cast<std::size_t>(x.node)].layer))
    refuse(name, "logarithms of probabilities", "only the loss after a log_softmax");
  return in;
}

void fail_for_single_value(const Node& node) {
  core::fail_usage({.what = "batch normalization of a single value per channel",
                    .where = fmt::format("layer '{}', a group of 1 sample of 1x1 pixels", node.name),
                    .expected = "more than 1 value per channel when training",
                    .fix = "larger batches, another bn_group, or larger images"});
}

}  // namespace lockstep::nn

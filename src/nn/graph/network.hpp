// A network as data: nodes in forward order, their parameters and their running statistics.
// Invariant: pure description; shapes are checked when a node is added, every name is unique, and a node uses values of
// earlier nodes only.
// Used by graph/models (which builds them), executors (which run them) and the weights file (which names parameters).
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace lockstep::nn {

/// The shape of one sample: {features} or {channels, height, width}.
using Shape = std::vector<std::uint64_t>;
[[nodiscard]] std::uint64_t n_elements(const Shape& shape) noexcept;
/// "3x224x224".
[[nodiscard]] std::string to_string(const Shape& shape);

/// The result of a node, used as the input of later ones.
struct Value {
  int node = -1;
};

/// Initial distributions of a parameter; those of PyTorch's layers.
enum class Init {
  zeros,
  ones,
  uniform_fan_in,          ///< uniform in +-1/sqrt(fan_in): PyTorch's Linear and Conv, weights and biases
  kaiming_normal_fan_out,  ///< normal of variance 2/fan_out: torchvision's ResNet convolutions
  normal,                  ///< standard normal: PyTorch's Embedding
};

struct Parameter {
  std::string name;  ///< as in PyTorch's state_dict: "layer1.0.conv1.weight"
  Shape shape;       ///< as PyTorch's: {out, in}, {out, in, kernel, kernel}, {features}
  Init init = Init::zeros;
  std::uint64_t fan = 1;  ///< what `init` divides by
};

/// A running mean or variance of batch normalization.
struct Statistic {
  std::string name;  ///< "bn1.running_mean"
  std::uint64_t n_channels = 0;
  float initial = 0;
};

struct Input {
  bool is_pixels = false;  ///< samples are images of uint8 (data::Batch::images), which the device converts to numbers
};
/// An input of integer ids, such as (user, item).
struct Ids {};
struct Linear {
  std::uint64_t n_out = 0;
  bool has_bias = true;
};
/// Square kernels.
struct Conv {
  std::uint64_t n_out = 0;
  std::uint64_t kernel = 3;
  std::uint64_t stride = 1;
  std::uint64_t padding = 0;
  bool has_bias = true;
};
/// Per channel of an image. Running statistics move by `momentum` towards those of a call: the means and unbiased
/// variances of its groups, averaged by samples.
struct BatchNorm {
  double eps = 1e-5;
  double momentum = 0.1;
  bool has_relu = false;  ///< one node: normalization and ReLU in one pass
};
struct Relu {};
/// The sum of two values of one shape.
struct Add {
  bool has_relu = false;
};
/// Square windows; padding is never the maximum.
struct MaxPool {
  std::uint64_t kernel = 2;
  std::uint64_t stride = 2;
  std::uint64_t padding = 0;
};
/// {channels, height, width} to {channels}.
struct GlobalAvgPool {};
/// {channels, height, width} to {features}, in that order.
struct Flatten {};
/// In training each element becomes 0 with `probability`, and is else scaled by 1 / (1 - probability).
struct Dropout {
  double probability = 0.5;
};
/// Row `ids[column]` of a table.
struct Embedding {
  std::uint64_t n_rows = 0;
  std::uint64_t width = 0;
  std::uint64_t column = 0;
};
/// Features side by side.
struct Concat {};
/// The logarithm of the probabilities of classes; only the last node of a network may be one.
struct LogSoftmax {};

using Layer = std::variant<Input, Ids, Linear, Conv, BatchNorm, Relu, Add, MaxPool, GlobalAvgPool, Flatten, Dropout,
                           Embedding, Concat, LogSoftmax>;

struct Node {
  std::string name;  ///< "layer1.0.conv1"; must be unique
  Layer layer;
  std::vector<Value> inputs;
  Shape output;
  std::vector<int> parameters{};  ///< weight, then bias; indices into Network::parameters()
  std::vector<int> statistics{};  ///< running mean, then variance
};

/// Built node by node in forward order. Each member throws core::Error (usage) naming the node if its input does not
/// fit ("image too small for the model"). Nodes without parameters may omit the name: "relu", "relu2", ...
class Network {
 public:
  /// The first node; ids() is the alternative.
  Value input(Shape shape, Input layer = {});
  /// `n_columns` whole numbers per sample.
  Value ids(std::uint64_t n_columns);
  /// An empty name means that the model is one layer, with parameters "weight" and "bias".
  Value linear(const std::string& name, Value x, Linear layer);
  Value conv(const std::string& name, Value x, Conv layer, Init init = Init::uniform_fan_in);
  Value batch_norm(const std::string& name, Value x, BatchNorm layer = {});
  Value relu(Value x, const std::string& name = {});
  Value add(Value a, Value b, Add layer = {}, const std::string& name = {});
  Value max_pool(Value x, MaxPool layer = {}, const std::string& name = {});
  Value global_avg_pool(Value x, const std::string& name = {});
  Value flatten(Value x, const std::string& name = {});
  Value dropout(Value x, Dropout layer, const std::string& name = {});
  Value embedding(const std::string& name, Value ids, Embedding layer);
  Value concat(std::vector<Value> values, const std::string& name = {});
  Value log_softmax(Value x, const std::string& name = {});

  [[nodiscard]] const std::vector<Node>& nodes() const noexcept { return nodes_; }
  [[nodiscard]] const std::vector<Parameter>& parameters() const noexcept { return parameters_; }
  [[nodiscard]] const std::vector<Statistic>& statistics() const noexcept { return statistics_; }
  /// The shape of the last node.
  [[nodiscard]] const Shape& output() const;
  [[nodiscard]] const Shape& shape(Value value) const;
  /// Multiply-adds of one sample, forward.
  [[nodiscard]] std::uint64_t n_multiply_adds() const;
  [[nodiscard]] std::uint64_t n_multiply_adds(const Node& node) const;
  [[nodiscard]] std::uint64_t n_parameter_elements() const noexcept;

 private:
  Value append(std::string name, const Layer& layer, std::vector<Value> inputs, Shape output);
  void add_parameter(Parameter parameter);
  void add_statistic(Statistic statistic);
  [[nodiscard]] std::string name_for(const std::string& given, const std::string& kind) const;
  /// The shape of `x`; throws unless node `name` accepts it as an image.
  [[nodiscard]] const Shape& image(Value x, const std::string& name) const;
  [[nodiscard]] const Shape& features(Value x, const std::string& name) const;
  [[nodiscard]] const Shape& numbers(Value x, const std::string& name) const;

  std::vector<Node> nodes_{};
  std::vector<Parameter> parameters_{};
  std::vector<Statistic> statistics_{};
};

/// Throws core::Error (usage): a batch normalization in training has one value per channel, so no variance.
[[noreturn]] void fail_for_single_value(const Node& node);

}  // namespace lockstep::nn

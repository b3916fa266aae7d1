// A network as data: nodes in forward order, their parameters and their running statistics.
// Invariant: pure description; shapes are checked when a node is added, every name is unique, and a node uses values of
// earlier nodes only.
// Used by graph/models (which builds them), executors (which run them) and the weights file (which names parameters).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "nn/graph/description.hpp"
#include "nn/ops/table.hpp"

namespace lockstep::nn {

/// The result of a node, used as the input of later ones.
struct Value {
  int node = -1;
};

struct Node {
  std::string name;  ///< "layer1.0.conv1"; must be unique
  Layer layer;
  std::vector<Value> inputs;
  Shape output;
  std::vector<int> parameters{};  ///< weight, then bias; indices into Network::parameters(), of which nodes may share
  std::vector<int> statistics{};  ///< running mean, then variance
  std::string unit{};             ///< the unit() that it was added in; empty: none
};

class Network;

/// See Network::block() and unit().
class NameScope {
 public:
  ~NameScope();
  NameScope(const NameScope&) = delete;
  NameScope& operator=(const NameScope&) = delete;

 private:
  friend class Network;
  NameScope(Network& network, const std::string& name, bool is_unit);

  Network& network_;
  std::size_t n_before_;  ///< characters of the prefix without the block
  bool is_unit_;
};

/// Built node by node in forward order. Each member throws core::Error (usage) naming the node if its input does not
/// fit ("image too small for the model").
class Network {
 public:
  /// Adds a node, and the parameters and statistics of its layer, which are called `name` and their own names. Without
  /// a name, the node is called by the layer's word and a number ("relu", "relu2", ...), and parameters have only their
  /// own names: the model is one layer. `weight_of`: an embedding whose weight, of the same shape, the layer reads
  /// instead of one of its own. It then is one parameter with several readers, whose gradient is the sum of theirs.
  Value append(const std::string& name, const Layer& layer, std::vector<Value> inputs, Value weight_of = {});

  /// Names of nodes begin with "name." as long as the result lives: those of a block of layers. Blocks may be nested.
  [[nodiscard]] NameScope block(const std::string& name);
  /// The same, and parameters of these nodes are kept and moved together by strategies that divide parameters among
  /// ranks. Throws core::Error (system) within another unit.
  [[nodiscard]] NameScope unit(const std::string& name);

  // append(), in words.
  /// The first node; ids() is the alternative.
  Value input(Shape shape, Input layer = {}) {
    layer.shape = std::move(shape);
    return append("input", layer, {});
  }
  /// `n_columns` whole numbers per sample: columns of a table, or a sequence.
  Value ids(std::uint64_t n_columns) { return append("ids", Ids{n_columns}, {}); }
  Value linear(const std::string& name, Value x, Linear layer, Value weight_of = {}) {
    return append(name, layer, {x}, weight_of);
  }
  Value conv(const std::string& name, Value x, Conv layer, Init init = Init::uniform_fan_in) {
    layer.init = init;
    return append(name, layer, {x});
  }
  Value batch_norm(const std::string& name, Value x, BatchNorm layer = {}) { return append(name, layer, {x}); }
  Value relu(Value x, const std::string& name = {}) { return append(name, Relu{}, {x}); }
  Value add(Value a, Value b, Add layer = {}, const std::string& name = {}) { return append(name, layer, {a, b}); }
  Value max_pool(Value x, MaxPool layer = {}, const std::string& name = {}) { return append(name, layer, {x}); }
  Value global_avg_pool(Value x, const std::string& name = {}) { return append(name, GlobalAvgPool{}, {x}); }
  Value flatten(Value x, const std::string& name = {}) { return append(name, Flatten{}, {x}); }
  Value dropout(Value x, Dropout layer, const std::string& name = {}) { return append(name, layer, {x}); }
  Value embedding(const std::string& name, Value ids, Embedding layer) { return append(name, layer, {ids}); }
  Value concat(std::vector<Value> values, const std::string& name = {}) {
    return append(name, Concat{}, std::move(values));
  }
  Value log_softmax(Value x, const std::string& name = {}) { return append(name, LogSoftmax{}, {x}); }

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
  /// How many nodes read a parameter.
  [[nodiscard]] std::size_t n_readers(int parameter) const noexcept;

 private:
  friend class NameScope;
  [[nodiscard]] bool has(const std::string& name) const;
  [[nodiscard]] int shared_weight(const LayerInputs& reader, const Description& described, Value of) const;
  [[nodiscard]] std::string name_for(const std::string& given, const Layer& layer) const;

  std::vector<Node> nodes_{};
  std::vector<Parameter> parameters_{};
  std::vector<Statistic> statistics_{};
  std::string prefix_{};  ///< of names: the blocks that are open, each with a dot
  std::string unit_{};    ///< the one of them that is a unit; empty: none
};

/// Throws core::Error (usage): a batch normalization in training has one value per channel, so no variance.
[[noreturn]] void fail_for_single_value(const Node& node);

}  // namespace lockstep::nn

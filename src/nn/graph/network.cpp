#include "nn/graph/network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/error.hpp"

namespace lockstep::nn {

NameScope::NameScope(Network& network, const std::string& name, bool is_unit)
    : network_{network}, n_before_{network.prefix_.size()}, is_unit_{is_unit} {
  core::require(!is_unit || network.unit_.empty(), "units are not nested");
  if (is_unit) network_.unit_ = network_.prefix_ + name;
  network_.prefix_ += name + ".";
}

NameScope::~NameScope() {
  network_.prefix_.resize(n_before_);
  if (is_unit_) network_.unit_.clear();
}

NameScope Network::block(const std::string& name) { return {*this, name, false}; }

NameScope Network::unit(const std::string& name) { return {*this, name, true}; }

Value Network::append(const std::string& name, const Layer& layer, std::vector<Value> inputs, Value weight_of) {
  std::vector<InputValue> values;
  for (const Value input : inputs)
    values.push_back({shape(input), traits(nodes_[static_cast<std::size_t>(input.node)].layer).output});
  const std::string called = name_for(name, layer);
  const LayerInputs read{called, std::move(values)};
  Description described = std::visit([&](const auto& of) { return of.describe(read); }, layer);
  if (inputs.empty() != nodes_.empty())
    read.refuse(inputs.empty() ? "a second input" : "no input", "a network whose first node is its one input");
  if (has(called)) read.refuse("a name used twice", "a name of its own for each layer");

  const std::string prefix = name.empty() ? prefix_ : called + ".";
  Node node{called, layer, std::move(inputs), described.output};
  node.unit = unit_;
  if (weight_of.node >= 0) {
    node.parameters.push_back(shared_weight(read, described, weight_of));
    described.parameters.erase(described.parameters.begin());
  }
  for (Parameter parameter : described.parameters) {
    parameter.name = prefix + parameter.name;
    node.parameters.push_back(static_cast<int>(parameters_.size()));
    parameters_.push_back(std::move(parameter));
  }
  for (Statistic statistic : described.statistics) {
    statistic.name = prefix + statistic.name;
    node.statistics.push_back(static_cast<int>(statistics_.size()));
    statistics_.push_back(std::move(statistic));
  }
  nodes_.push_back(std::move(node));
  return {static_cast<int>(nodes_.size() - 1)};
}

int Network::shared_weight(const LayerInputs& reader, const Description& described, Value of) const {
  static_cast<void>(shape(of));
  const Node& owner = nodes_[static_cast<std::size_t>(of.node)];
  if (!std::holds_alternative<Embedding>(owner.layer))
    reader.refuse(fmt::format("the weight of '{}'", owner.name), "a weight of its own, or that of an embedding");
  const int weight = owner.parameters.front();
  const Parameter& shared = parameters_[static_cast<std::size_t>(weight)];
  if (described.parameters.empty() || described.parameters.front().shape != shared.shape)
    reader.refuse(fmt::format("'{}' of shape {} as its weight", shared.name, to_string(shared.shape)),
                  described.parameters.empty()
                      ? "a layer that has a weight"
                      : fmt::format("a weight of shape {}", to_string(described.parameters.front().shape)));
  return weight;
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
  if (!traits(node.layer).is_product) return 0;
  const Shape& weight = parameters_[static_cast<std::size_t>(node.parameters.front())].shape;
  return n_elements(node.output) * (n_elements(weight) / weight[0]);
}

std::uint64_t Network::n_parameter_elements() const noexcept {
  return std::accumulate(parameters_.begin(), parameters_.end(), std::uint64_t{0},
                         [](std::uint64_t n, const Parameter& parameter) { return n + n_elements(parameter.shape); });
}

std::size_t Network::n_readers(int parameter) const noexcept {
  return static_cast<std::size_t>(std::ranges::count_if(
      nodes_, [&](const Node& node) { return std::ranges::count(node.parameters, parameter) > 0; }));
}

bool Network::has(const std::string& name) const {
  return std::any_of(nodes_.begin(), nodes_.end(), [&](const Node& node) { return node.name == name; });
}

std::string Network::name_for(const std::string& given, const Layer& layer) const {
  if (!given.empty()) return prefix_ + given;
  const std::string word = fmt::format("{}{}", prefix_, traits(layer).word);
  std::string name = word;
  for (int i = 2; has(name); ++i) name = fmt::format("{}{}", word, i);
  return name;
}

void fail_for_single_value(const Node& node) {
  core::fail_usage({.what = "batch normalization of a single value per channel",
                    .where = fmt::format("layer '{}', a group of 1 sample of 1x1 pixels", node.name),
                    .expected = "more than 1 value per channel when training",
                    .fix = "larger batches, another bn_group, or larger images"});
}

}  // namespace lockstep::nn

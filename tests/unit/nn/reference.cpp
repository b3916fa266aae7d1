#include "unit/nn/reference.hpp"

#include <utility>

#include "core/error.hpp"
#include "unit/nn/reference_layers.hpp"

namespace lockstep::nn {
namespace {

std::size_t place(int index) { return static_cast<std::size_t>(index); }

}  // namespace

Reference::Reference(Network network) : network_{std::move(network)} {
  for (const Parameter& parameter : network_.parameters()) parameters_.emplace_back(n_elements(parameter.shape));
  for (const Statistic& statistic : network_.statistics())
    statistics_.emplace_back(statistic.n_channels, static_cast<double>(statistic.initial));
  values_.resize(network_.nodes().size());
}

NodePass Reference::pass_of(std::size_t i) {
  const Node& node = network_.nodes()[i];
  NodePass pass{.node = node, .index = static_cast<int>(i), .batch = batch_, .options = options_};
  pass.y = &values_[i];
  for (const Value x : node.inputs) {
    pass.shapes.push_back(network_.shape(x));
    pass.x.push_back(&values_[place(x.node)]);
  }
  for (const int parameter : node.parameters) pass.parameters.push_back(&parameters_[place(parameter)]);
  for (const int statistic : node.statistics) pass.statistics.push_back(&statistics_[place(statistic)]);
  return pass;
}

LossSums Reference::forward(const ReferenceBatch& batch, const ReferenceOptions& options) {
  batch_ = batch;
  options_ = options;
  const Node& input = network_.nodes().front();
  const std::size_t n = std::holds_alternative<Ids>(input.layer) ? batch.ids.size() : batch.x.size();
  core::require(n == batch.n * n_elements(input.output), "a batch has the network's shape");
  for (std::size_t i = 0; i < network_.nodes().size(); ++i) nn::forward(pass_of(i));
  return loss_of(batch_, options_, values_.back(), network_.output(), 1, nullptr);
}

void Reference::backward(double scale) {
  core::require(options_.is_training, "backward() follows forward() in training");
  gradients_.clear();
  for (const Tensor& parameter : parameters_) gradients_.emplace_back(parameter.size());
  value_gradients_.clear();
  for (const Tensor& value : values_) value_gradients_.emplace_back(value.size());
  loss_of(batch_, options_, values_.back(), network_.output(), scale, &value_gradients_.back());
  for (std::size_t i = network_.nodes().size(); i-- > 0;) {
    NodePass pass = pass_of(i);
    pass.dy = &value_gradients_[i];
    for (const Value x : pass.node.inputs) pass.dx.push_back(&value_gradients_[place(x.node)]);
    for (const int parameter : pass.node.parameters) pass.d_parameters.push_back(&gradients_[place(parameter)]);
    nn::backward(pass);
  }
}

}  // namespace lockstep::nn

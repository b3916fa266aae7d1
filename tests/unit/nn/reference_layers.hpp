// Each layer forward and backward for a whole batch, directly from its definition.
// Invariant: backward() adds to dx and to d_parameters, and recomputes what it needs from x.
// Used by reference.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "unit/nn/reference.hpp"

namespace lockstep::nn {

using Tensor = std::vector<double>;

/// One node's part of a forward or backward pass.
struct NodePass {
  const Node& node;
  int index;  ///< of the node
  const ReferenceBatch& batch;
  const ReferenceOptions& options;
  std::vector<Shape> shapes{};  ///< of the inputs
  std::vector<const Tensor*> x{};
  std::vector<const Tensor*> parameters{};
  std::vector<Tensor*> statistics{};
  Tensor* y = nullptr;
  // For the backward pass only.
  const Tensor* dy = nullptr;
  std::vector<Tensor*> dx{};
  std::vector<Tensor*> d_parameters{};
};

void forward(const NodePass& pass);
void backward(const NodePass& pass);

// Layers that have a file of their own, reference_rows.cpp.
void forward(const LayerNorm& norm, const NodePass& pass);
void backward(const LayerNorm& norm, const NodePass& pass);

/// Returns the loss of the outputs `y` of shape `output`; with `dy`, also computes the gradient of `scale` times the
/// samples' losses, each the mean of its rows.
LossSums loss_of(const ReferenceBatch& batch, const ReferenceOptions& options, const Tensor& y, const Shape& output,
                 double scale, Tensor* dy);

}  // namespace lockstep::nn

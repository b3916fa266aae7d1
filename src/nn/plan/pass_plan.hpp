// The order of a pass over a network: when nodes run, whose gradients a node waits for, and when parameters complete.
// Invariant: follows from the network alone, so all devices, batch sizes and ranks agree.
// Used by nn/plan/layer_plan, which plans layers in this order, and by layouts of parameters.
#pragma once

#include <cstddef>
#include <vector>

#include "core/slice.hpp"
#include "nn/graph/network.hpp"

namespace lockstep::nn {

/// A place where a value is read: an input of a node.
struct Reader {
  std::size_t node = 0;
  std::size_t input = 0;

  bool operator==(const Reader&) const = default;
};

struct BackwardStep {
  std::size_t node = 0;
  /// Those whose gradients the node's output has, in the order in which they arrive. None for the last node, whose
  /// gradient is that of the loss.
  std::vector<Reader> readers{};
  core::Slice completed{};  ///< of PassPlan::parameters
  /// Places in PassPlan::parameters: the gradients that the node writes. It adds to those of its other parameters,
  /// which a later node has written.
  std::vector<std::size_t> written{};
};

struct PlannedParameter {
  int parameter = 0;     ///< index into Network::parameters()
  std::size_t node = 0;  ///< the first that reads it, whose backward pass completes the gradient
};

/// Times of a pass count nodes forward, then the loss, its gradient, and nodes backward.
struct PassPlan {
  std::vector<bool> needs_gradient{};          ///< of nodes: the node, or one before it, has parameters
  std::vector<BackwardStep> backward{};        ///< of the nodes that need a gradient
  std::vector<PlannedParameter> parameters{};  ///< in the order in which their gradients complete

  /// Whether the step adds to the gradient of a parameter of its node, instead of writing it.
  [[nodiscard]] bool adds(const BackwardStep& step, int parameter) const noexcept;

  [[nodiscard]] std::size_t n_nodes() const noexcept { return needs_gradient.size(); }
  [[nodiscard]] int time_of_forward(std::size_t node) const noexcept { return static_cast<int>(node); }
  [[nodiscard]] int time_of_loss() const noexcept { return static_cast<int>(n_nodes()); }
  [[nodiscard]] int time_of_loss_gradient() const noexcept { return time_of_loss() + 1; }
  [[nodiscard]] int time_of_backward(std::size_t node) const noexcept {
    return static_cast<int>(2 * n_nodes() + 1 - node);
  }
};

[[nodiscard]] PassPlan plan_pass(const Network& network);

}  // namespace lockstep::nn

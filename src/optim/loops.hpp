// The element loops of all rules on the host, one set per instruction set, chosen at run time.
// Invariant: all sets give the same bits, and an element's result depends only on its own values. So parameters depend
// neither on the processor nor on how an arena is divided.
// Used by Optimizer; private to this folder and its tests.
#pragma once

#include <array>
#include <cstddef>

#include "core/loop_sets.hpp"
#include "optim/rules.hpp"

namespace lockstep::optim {

/// Elements [offset, offset + n) of a part's arrays. Plain pointers, because the loops may call no inline function of
/// std: the linker could choose the copy of one instruction set for all.
struct Elements {
  const float* const* gradients =
      nullptr;  ///< one per rank, or none; the gradient is their sum in this order, times `scale`
  std::size_t n_gradients = 0;
  float scale = 1;
  float* parameters = nullptr;
  float* state[2] = {};
  std::size_t offset = 0;
  std::size_t n = 0;
};

struct RuleLoops {
  /// First pass, null if the rule needs no norms: returns those of its update. Writes the states with Norms::of_update.
  SquaredNorms (*measure)(const Elements&, const Settings&) = nullptr;
  /// Last pass: writes the parameters. `norms`: of whole tensors, where needed.
  void (*update)(const Elements&, const Settings&, const SquaredNorms& norms) = nullptr;
};

struct Loops {
  core::LoopSet set;
  std::array<RuleLoops, rule_rows.size()> rules;  ///< by OptimizerKind
  double (*squared_gradient)(const Elements&);

  template <core::LoopSet set>
  [[nodiscard]] static const Loops& version() noexcept;
};

/// Returns the fastest set.
[[nodiscard]] inline const Loops& loops() noexcept { return *core::available_loops<Loops>().back(); }

}  // namespace lockstep::optim

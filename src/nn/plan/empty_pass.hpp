// The passes of a rank without samples: they compute nothing, and walk the same order as all others.
// Invariant: units are reported as in a pass with samples; slots get their gradients, and become ready, at the nodes
// that complete them.
// Used by the executors of nn/host and nn/cuda.
#pragma once

#include <cstddef>

#include "nn/executor.hpp"
#include "nn/plan/parameter_slots.hpp"

namespace lockstep::nn {

/// `join(node)`: takes part in what ranks compute together at that node.
template <class Join>
void forward_without_samples(const PassPlan& plan, const ParameterSlots& slots, Hooks& hooks, runtime::Stream& stream,
                             const Join& join) {
  for (std::size_t node = 0; node < plan.n_nodes(); ++node)
    slots.units().forward(node, &hooks, &stream, [&] { join(node); });
}

/// The same. `join(step)` also gives the gradients that the step completes their values.
template <class Join>
void backward_without_samples(const PassPlan& plan, const ParameterSlots& slots, Hooks& hooks, runtime::Stream& stream,
                              const Join& join) {
  for (const BackwardStep& step : plan.backward) {
    slots.units().backward(step.node, &hooks, &stream, [&] { join(step); });
    const core::Slice ready = slots.reported_after(step.completed);
    for (std::size_t slot = ready.offset; slot < ready.end(); ++slot) hooks.ready(slot);
  }
}

}  // namespace lockstep::nn

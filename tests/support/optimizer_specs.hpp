// Every rule of optim in all its forms, for tests that go through the registry.
// Invariant: each spec passes check(), and is named by its word and what it sets.
// Used by the tests of optim and optim/cuda.
#pragma once

#include <string>
#include <vector>

#include "optim/optimizer_spec.hpp"

namespace lockstep::test {

struct NamedSpec {
  std::string name;
  optim::OptimizerSpec spec{};
};

/// With weight decay; with and without momentum, dampened and of Nesterov; with a beta1 below one half, whose averages
/// start at the far end.
[[nodiscard]] inline std::vector<NamedSpec> optimizer_specs() {
  std::vector<NamedSpec> specs;
  for (const optim::OptimizerKind kind : optim::all_optimizer_kinds) {
    const optim::Uses& uses = optim::rule_row(kind).description.uses;
    const auto add = [&](bool is_used, const std::string& suffix, auto... set) {
      optim::OptimizerSpec spec = optim::default_spec(kind);
      spec.weight_decay = 0.01;
      spec.momentum = 0;
      (set(spec), ...);
      if (is_used) specs.push_back({std::string{name(kind)} + suffix, spec});
    };
    const auto momentum = [](auto& spec) { spec.momentum = 0.9; };
    add(true, "");
    add(uses.momentum, "_momentum", momentum);
    add(uses.dampening, "_dampening", momentum, [](auto& spec) { spec.dampening = 0.1; });
    add(uses.nesterov, "_nesterov", momentum, [](auto& spec) { spec.nesterov = true; });
    add(uses.beta1, "_small_beta1", [](auto& spec) { spec.beta1 = 0.4; });
  }
  return specs;
}

}  // namespace lockstep::test

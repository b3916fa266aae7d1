// The choice of a rule: its word, defaults and ranges.
// Invariant: pure; what differs between rules is read from rules.hpp.
// Used by the recipe, the optimizers and parallel/.
#pragma once

#include <span>
#include <string_view>

#include "optim/rules.hpp"

namespace lockstep::optim {

[[nodiscard]] constexpr std::string_view name(OptimizerKind kind) noexcept { return rule_row(kind).description.word; }

[[nodiscard]] constexpr OptimizerSpec default_spec(OptimizerKind kind) noexcept {
  OptimizerSpec spec = rule_row(kind).description.defaults;
  spec.kind = kind;
  return spec;
}
[[nodiscard]] constexpr double default_rate(OptimizerKind kind) noexcept { return rule_row(kind).description.lr; }

/// Whether a step needs norms of whole tensors. Such rules also treat biases and normalization in their own way.
[[nodiscard]] constexpr bool needs_norms(OptimizerKind kind) noexcept { return rule_row(kind).norms != Norms::none; }

/// The states that are kept for each element, in the order of a rule's step().
[[nodiscard]] constexpr std::span<const std::string_view> state_names(const OptimizerSpec& spec) noexcept {
  return spec.momentum == 0 ? rule_row(spec.kind).states_without_momentum : rule_row(spec.kind).states;
}

/// Throws core::Error (usage) naming the key in kebab case (`weight-decay`) and the expected range.
void check(const OptimizerSpec& spec);

}  // namespace lockstep::optim

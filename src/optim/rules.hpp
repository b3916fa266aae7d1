// The registry of rules. Recipes, help, loops, kernels, checkpoints and tests know a rule from its row here.
// Invariant: OptimizerKind and Rules list the rules in the same order; an enumerator equals its rule's word.
// Used by optimizer_spec, the engines, and the recipe's keys.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

#include "optim/rule.hpp"
#include "optim/rules/adadelta.hpp"
#include "optim/rules/adam.hpp"
#include "optim/rules/lamb.hpp"
#include "optim/rules/lars.hpp"
#include "optim/rules/lion.hpp"
#include "optim/rules/sgd.hpp"

namespace lockstep::optim {

template <class... R>
struct RuleList {};

enum class OptimizerKind : int { sgd, adam, adamw, adadelta, lars, lamb, lion };
using Rules = RuleList<Sgd, Adam, AdamW, Adadelta, Lars, Lamb, Lion>;

/// A rule as plain values.
struct RuleRow {
  Description description;
  std::span<const std::string_view> states;
  std::span<const std::string_view> states_without_momentum;
  Norms norms;
};

/// Returns an array of make(R{}) for each rule R, by OptimizerKind.
template <class Make, class... R>
[[nodiscard]] constexpr auto for_each_rule(RuleList<R...> /*rules*/, Make make) {
  return std::array{make(R{})...};
}

inline constexpr auto rule_rows = for_each_rule(Rules{}, []<class R>(R) {
  RuleRow row{R::description, R::states, R::states, R::norms};
  if constexpr (!std::is_void_v<typename R::WithoutMomentum>) row.states_without_momentum = R::WithoutMomentum::states;
  return row;
});

inline constexpr auto all_optimizer_kinds = [] {
  std::array<OptimizerKind, rule_rows.size()> kinds{};
  for (std::size_t i = 0; i < kinds.size(); ++i) kinds[i] = static_cast<OptimizerKind>(i);
  return kinds;
}();

[[nodiscard]] constexpr const RuleRow& rule_row(OptimizerKind kind) noexcept {
  return rule_rows[static_cast<std::size_t>(kind)];
}

/// The words of the rules that use a member of OptimizerSpec, separated by spaces: users<&Uses::rho>.
template <bool Uses::*member>
inline constexpr auto users_text = [] {
  std::array<char, 16 * rule_rows.size()> text{};
  std::size_t n = 0;
  for (const RuleRow& row : rule_rows) {
    if (!(row.description.uses.*member)) continue;
    if (n > 0) text[n++] = ' ';
    for (const char letter : row.description.word) text[n++] = letter;
  }
  return text;
}();
template <bool Uses::*member>
inline constexpr std::string_view users{users_text<member>.data()};

}  // namespace lockstep::optim

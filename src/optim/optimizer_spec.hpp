// The choice of optimizer and its numbers; the learning rate belongs to the schedule.
// Invariant: a description only; default_spec() has PyTorch's defaults, or the paper's if PyTorch has none.
// Used by the recipe, the optimizers and parallel/.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace lockstep::optim {

/// Enumerators equal the words of the recipe. lars: You, Gitman, Ginsburg 2017 (arXiv 1708.03888); lamb: You et al.
/// 2019 (arXiv 1904.00962); the others as in torch.optim.
enum class OptimizerKind { sgd, adam, adamw, adadelta, lars, lamb };

inline constexpr std::array<OptimizerKind, 6> all_optimizer_kinds{OptimizerKind::sgd,   OptimizerKind::adam,
                                                                  OptimizerKind::adamw, OptimizerKind::adadelta,
                                                                  OptimizerKind::lars,  OptimizerKind::lamb};

[[nodiscard]] std::string_view name(OptimizerKind kind) noexcept;
[[nodiscard]] std::optional<OptimizerKind> find_optimizer_kind(std::string_view word) noexcept;

/// Each kind ignores the members that it does not use.
struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::sgd;
  double weight_decay = 0;  ///< all; adamw and lamb: decoupled from the gradient
  double momentum = 0;      ///< sgd, lars
  double dampening = 0;     ///< sgd
  bool nesterov = false;    ///< sgd
  double beta1 = 0.9;       ///< adam, adamw, lamb
  double beta2 = 0.999;     ///< adam, adamw, lamb
  double rho = 0.9;         ///< adadelta
  double eps = 1e-8;        ///< adam, adamw, lamb, adadelta
  double trust = 0.001;     ///< lars
};

[[nodiscard]] OptimizerSpec default_spec(OptimizerKind kind) noexcept;

/// Throws core::Error (usage) naming the key in kebab case (`weight-decay`) and the expected range.
void check(const OptimizerSpec& spec);

}  // namespace lockstep::optim

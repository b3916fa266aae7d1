// The interface of a family of optimizers to Optimizer: the states it keeps and the numbers of each pass over elements.
// Invariant: stateless; the Optimizer holds everything that lasts from step to step.
// Used by Optimizer; implemented by sgd.cpp, adam.cpp, adadelta.cpp, lars.cpp and lamb.cpp. Private to this folder.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "optim/kernels.hpp"
#include "optim/optimizer_spec.hpp"

namespace lockstep::optim {

/// Elements with the same settings. If norms are needed, it is (a part of) one tensor, and `norms` are those of the
/// whole tensor.
struct Range {
  Elements elements{};
  bool decays = true;
  SquaredNorms norms{};
};

/// Names of states, as in PyTorch.
inline constexpr std::array<std::string_view, 1> momentum_state{"momentum"};
inline constexpr std::array<std::string_view, 2> moment_states{"exp_avg", "exp_avg_sq"};

class Family {
 public:
  virtual ~Family() = default;

  /// At most two, in the order of Elements::state.
  [[nodiscard]] virtual std::span<const std::string_view> state_names() const noexcept = 0;
  [[nodiscard]] virtual bool needs_norms() const noexcept { return false; }

  /// First pass, if norms are needed. `step` counts from 1.
  virtual SquaredNorms measure(const Range& /*range*/, std::uint64_t /*step*/) const { return {}; }
  /// Last pass: writes the parameters.
  virtual void update(const Range& range, double lr, std::uint64_t step) const = 0;
};

[[nodiscard]] std::unique_ptr<Family> make_sgd(const OptimizerSpec& spec);
/// adam or adamw.
[[nodiscard]] std::unique_ptr<Family> make_adam(const OptimizerSpec& spec);
[[nodiscard]] std::unique_ptr<Family> make_adadelta(const OptimizerSpec& spec);
[[nodiscard]] std::unique_ptr<Family> make_lars(const OptimizerSpec& spec);
[[nodiscard]] std::unique_ptr<Family> make_lamb(const OptimizerSpec& spec);

}  // namespace lockstep::optim

// The element loops of the optimizers, one set per instruction set, chosen at run time.
// Invariant: all sets give the same bits, and an element's result depends only on its own values. So parameters depend
// neither on the processor nor on how an arena is divided.
// Used by the families (sgd.cpp, adam.cpp, ...); private to this folder and its tests.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "core/loop_sets.hpp"

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

/// Sums of squares, in double.
struct SquaredNorms {
  double parameter = 0;
  double update = 0;
};

// The numbers of one step, rounded to float32 once, as in PyTorch.

struct SgdNumbers {
  float decay;
  float lr;
  float momentum;
  float undamped;  ///< 1 - dampening
  bool is_nesterov;
};

/// adam uses `decay`, adamw uses `keep`; the other one is neutral.
struct AdamNumbers {
  float decay;   ///< added to the gradient, times the parameter
  float keep;    ///< multiplies the parameter
  float weight;  ///< 1 - beta1
  float beta2;
  float weight2;  ///< 1 - beta2
  float bias2_sqrt;
  float eps;
  float rate;  ///< lr with the bias correction of the first moment
};

struct AdadeltaNumbers {
  float decay;
  float lr;
  float rho;
  float weight;  ///< 1 - rho
  float eps;
};

struct LarsNumbers {
  float decay;
  float momentum;
  float rate;  ///< lr times the tensor's trust ratio
};

struct LambNumbers {
  float decay;
  float weight;  ///< 1 - beta1
  float beta2;
  float weight2;  ///< 1 - beta2
  float bias1;
  float bias2_sqrt;
  float eps;
  float rate;  ///< lr times the tensor's trust ratio; for the second pass only
};

/// The loops of one instruction set.
struct Kernels {
  std::string_view name;
  void (*sgd)(const Elements&, const SgdNumbers&);            ///< no state
  void (*sgd_momentum)(const Elements&, const SgdNumbers&);   ///< state: momentum
  void (*adam)(const Elements&, const AdamNumbers&);          ///< state: exp_avg, exp_avg_sq
  void (*adadelta)(const Elements&, const AdadeltaNumbers&);  ///< state: square_avg, acc_delta
  void (*lars)(const Elements&, const LarsNumbers&);          ///< state: momentum
  /// First pass: writes the state (exp_avg, exp_avg_sq) and leaves the parameters.
  SquaredNorms (*lamb_moments)(const Elements&, const LambNumbers&);
  /// Second pass: writes the parameters, reads no gradient.
  void (*lamb)(const Elements&, const LambNumbers&);
  double (*squared_gradient)(const Elements&);
  double (*squared_parameter)(const Elements&);

  template <core::LoopSet set>
  [[nodiscard]] static const Kernels& version() noexcept;
};

/// Returns every set that this processor can run, slowest first; never empty.
[[nodiscard]] inline std::span<const Kernels* const> available_kernels() noexcept {
  return core::available_loops<Kernels>();
}

/// Returns the fastest set.
[[nodiscard]] inline const Kernels& kernels() noexcept { return *available_kernels().back(); }

}  // namespace lockstep::optim

// What a backend may tell of its last pass beside its results: where numbers stop being finite.
// Invariant: looking changes nothing that is computed; a backend that cannot tell has none.
// Used by the trainer, after each forward pass, for the message of a loss that is not finite; implemented by nn/host.
#pragma once

#include <string>

namespace lockstep::nn {

class Inspection {
 public:
  virtual ~Inspection() = default;

  /// Whether the loss of the last forward pass is finite; waits for it.
  [[nodiscard]] virtual bool is_finite() const = 0;
  /// The node whose output (forward) or incoming gradient (backward) of the last pass holds the first NaN or infinity,
  /// by name; empty if none does. Slow: for the message only. Computes the pass again, without other ranks, so ask
  /// before parameters change; gradients are overwritten.
  [[nodiscard]] virtual std::string find_not_finite() const = 0;
};

}  // namespace lockstep::nn

// Further facts about a backend's last pass: where numbers stop being finite.
// Invariant: inspection changes no result; a backend may have none.
// Used by the trainer, after each forward pass, for the message about a loss that is not finite; implemented by
// nn/host.
#pragma once

#include <string>

namespace lockstep::nn {

class Inspection {
 public:
  virtual ~Inspection() = default;

  /// Whether the loss of the last forward pass is finite; waits for it.
  [[nodiscard]] virtual bool is_finite() const = 0;
  /// Returns the name of the first node of the last pass with a NaN or infinity in its output (forward) or incoming
  /// gradient (backward); empty if there is none. Slow, for the message only. Computes the pass again without other
  /// ranks and overwrites gradients, so it must be called before parameters change.
  [[nodiscard]] virtual std::string find_not_finite() const = 0;
};

}  // namespace lockstep::nn

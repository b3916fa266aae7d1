// Further facts about a backend's last pass: where numbers stop being finite.
// Invariant: inspecting changes no result; a backend without this has none.
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
  /// The name of the node whose output (forward) or incoming gradient (backward) of the last pass has the first NaN or
  /// infinity; empty if none has. Slow: for the message only. Computes the pass again, without other ranks, so it must
  /// be called before parameters change; gradients are overwritten.
  [[nodiscard]] virtual std::string find_not_finite() const = 0;
};

}  // namespace lockstep::nn

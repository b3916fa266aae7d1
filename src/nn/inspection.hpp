// What a backend may tell of its passes beside their results: where time goes, and where numbers stop being finite.
// Invariant: looking changes nothing that is computed; a backend that cannot tell has none.
// Used by the trainer, for --profile and for the message of a loss that is not finite; implemented by nn/host.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::nn {

/// Time in one node since start_profile().
struct ProfileRow {
  std::string node{};
  double forward_s = 0;
  double backward_s = 0;
  std::uint64_t n_multiply_adds = 0;  ///< of one sample, forward
};

class Inspection {
 public:
  virtual ~Inspection() = default;

  virtual void start_profile() = 0;
  /// In forward order; nodes that did nothing are left out.
  [[nodiscard]] virtual std::vector<ProfileRow> profile() const = 0;

  /// Whether the loss of the last forward pass is finite; waits for it.
  [[nodiscard]] virtual bool is_finite() const = 0;
  /// The node whose output (forward) or incoming gradient (backward) of the last pass holds the first NaN or infinity,
  /// by name; empty if none does. Slow: for the message only. Computes the pass again, without other ranks, so ask
  /// before parameters change; gradients are overwritten.
  [[nodiscard]] virtual std::string find_not_finite() const = 0;
};

}  // namespace lockstep::nn

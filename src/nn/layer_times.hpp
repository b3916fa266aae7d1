// The time of an executor's passes, layer by layer.
// Invariant: timing changes no result, and no pass waits for it.
// Used by the trainer, for --profile; implemented by nn/host and nn/cuda.
#pragma once

#include <string>
#include <vector>

namespace lockstep::nn {

/// Time in one node while it was watched.
struct ProfileRow {
  std::string node{};
  double forward_s = 0;
  double backward_s = 0;
};

class LayerTimes {
 public:
  virtual ~LayerTimes() = default;

  /// Starts to time passes enqueued by Executor::enqueue(); none of them may be recorded.
  virtual void start_profile() = 0;
  [[nodiscard]] virtual bool is_profiling() const noexcept = 0;
  /// Waits for these passes and returns their times in forward order, without nodes that did nothing.
  [[nodiscard]] virtual std::vector<ProfileRow> end_profile() = 0;
};

}  // namespace lockstep::nn

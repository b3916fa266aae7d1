// The time of passes, layer by layer: marks in the stream between layers, by the device's own clock.
// Invariant: timing changes no result. Without a profile nothing is marked; with one, the host waits for marks only at
// the end, and keeps only those of unfinished passes.
// Used by the trainer; what runs a pass on a device marks.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "nn/graph/network.hpp"
#include "runtime/device.hpp"

namespace lockstep::nn {

/// Time in one node while it was watched.
struct ProfileRow {
  std::string node{};
  double forward_s = 0;
  double backward_s = 0;
};

class LayerTimes {
 public:
  /// `network` must outlive it.
  explicit LayerTimes(const Network& network) : network_{network} {}

  void start_profile();
  [[nodiscard]] bool is_profiling() const noexcept { return is_profiling_; }
  /// Waits for the passes since start_profile(), and returns their times in forward order, without nodes that did
  /// nothing.
  [[nodiscard]] std::vector<ProfileRow> end_profile();

  // For what runs a pass.
  /// Work given to `stream` since the last mark belongs to no node.
  void begin(runtime::Stream& stream);
  /// That work belongs to `node`.
  void forward_done(runtime::Stream& stream, std::size_t node);
  void backward_done(runtime::Stream& stream, std::size_t node);

 private:
  struct Marked {
    runtime::Event at{};
    double* seconds = nullptr;  ///< where the time since the previous mark is added
  };
  void mark(runtime::Stream& stream, double* seconds);
  /// Adds the times of marks that have completed.
  void add_up();

  const Network& network_;
  bool is_profiling_ = false;
  std::vector<double> forward_s_{}, backward_s_{};  ///< by node
  std::deque<Marked> marks_{};                      ///< the first one is already counted
};

}  // namespace lockstep::nn

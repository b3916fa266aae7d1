// Time per layer: marks in the stream between layers, by the device's own clock.
// Invariant: without a profile nothing is marked; with one, the host waits for marks only at the end, and keeps only
// those of unfinished passes.
// Used by nn/host and nn/cuda: their executors return it, what runs a pass marks.
#pragma once

#include <deque>
#include <vector>

#include "nn/executor.hpp"
#include "nn/graph/network.hpp"
#include "runtime/device.hpp"

namespace lockstep::nn {

class MarkedTimes final : public LayerTimes {
 public:
  /// `network` must outlive it.
  explicit MarkedTimes(const Network& network) : network_{network} {}

  void start_profile() override;
  [[nodiscard]] bool is_profiling() const noexcept override { return is_profiling_; }
  [[nodiscard]] std::vector<ProfileRow> end_profile() override;

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

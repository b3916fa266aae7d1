// Time by layer on a GPU: marks in the stream between layers, by the GPU's own clock.
// Invariant: without a profile nothing is marked; with one the host waits for no mark before the end, and keeps only
// those of unfinished passes.
// Used by nn/cuda: the executor hands it out, the program marks.
#pragma once

#include <deque>
#include <vector>

#include "nn/layer_times.hpp"
#include "nn/network.hpp"
#include "runtime/device.hpp"

namespace lockstep::nn::cuda {

class MarkedTimes final : public LayerTimes {
 public:
  /// `network` must outlive it.
  explicit MarkedTimes(const Network& network) : network_{network} {}

  void start_profile() override;
  [[nodiscard]] bool is_profiling() const noexcept override { return is_profiling_; }
  [[nodiscard]] std::vector<ProfileRow> end_profile() override;

  /// What `stream` was given since the last mark is no node's.
  void begin(runtime::Stream& stream);
  /// It is a node's.
  void forward_done(runtime::Stream& stream, std::size_t node);
  void backward_done(runtime::Stream& stream, std::size_t node);

 private:
  struct Marked {
    runtime::Event at{};
    double* seconds = nullptr;  ///< to which the time from the mark before is added
  };
  void mark(runtime::Stream& stream, double* seconds);
  /// Of marks that are over.
  void add_up();

  const Network& network_;
  bool is_profiling_ = false;
  std::vector<double> forward_s_{}, backward_s_{};  ///< by node
  std::deque<Marked> marks_{};                      ///< the first one is counted
};

}  // namespace lockstep::nn::cuda

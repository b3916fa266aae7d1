// The order of units along a pass: before which node each is needed, and after which it is done.
// Invariant: follows from the network and the units of its parameters alone. So all passes of a kind walk the same
// order: on any device and rank, with any number of samples.
// Used by the programs of nn/host and nn/cuda, and by plan/empty_pass for a rank without samples.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "nn/executor.hpp"

namespace lockstep::nn {

class UnitWalk {
 public:
  UnitWalk() = default;
  /// `units`: Placed::unit of each of the network's parameters.
  UnitWalk(const Network& network, std::span<const std::optional<std::size_t>> units);

  /// By unit: the nodes from the first that reads it to the last.
  [[nodiscard]] const std::vector<core::Slice>& reads() const noexcept { return reads_; }

  /// Calls compute(), the part of a node in a forward pass. Before that, reports the units that no earlier node reads
  /// as needed; after it, those that no later node reads as done. Without `hooks` nothing is reported.
  template <class Compute>
  void forward(std::size_t node, Hooks* hooks, runtime::Stream* stream, const Compute& compute) const {
    report_around(first_read_[node], last_read_[node], hooks, stream, compute);
  }
  /// The same in a backward pass, in which nodes come in reverse.
  template <class Compute>
  void backward(std::size_t node, Hooks* hooks, runtime::Stream* stream, const Compute& compute) const {
    report_around(last_read_[node], first_read_[node], hooks, stream, compute);
  }

 private:
  using Units = std::vector<std::size_t>;  ///< ascending

  template <class Compute>
  static void report_around(const Units& begin, const Units& end, Hooks* hooks, runtime::Stream* stream,
                            const Compute& compute) {
    if (hooks != nullptr)
      for (const std::size_t unit : begin) hooks->need(unit, *stream);
    compute();
    if (hooks != nullptr)
      for (const std::size_t unit : end) hooks->done(unit, *stream);
  }

  std::vector<core::Slice> reads_{};
  std::vector<Units> first_read_{}, last_read_{};  ///< by node: the units that it is the first, or last, to read
};

}  // namespace lockstep::nn

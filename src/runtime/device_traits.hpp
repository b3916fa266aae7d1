// The differences between devices, for code that does not know which one a run uses.
// Invariant: plain values, the same on all ranks of a run.
// Used by training/, which reads them once, after it has chosen the device.
#pragma once

namespace lockstep::runtime {

/// By default those of a host.
struct DeviceTraits {
  /// Each rank has everything in memory that only its device reads. Otherwise the ranks of a node share parameters, and
  /// divide the states of the optimizer among themselves.
  bool has_own_memory = false;
  /// It runs what is enqueued while the host goes on: the host reads a step's results one step later, and steps can be
  /// recorded.
  bool runs_behind = false;
  /// Lanes and ranks are summed by one tree, so that bits do not depend on the number of ranks.
  bool adds_lanes = true;
  /// The ranks sum and update only those rows of an embedding that a step has touched.
  bool sums_rows = true;
  bool has_f16 = false;
  bool has_bf16 = true;

  bool operator==(const DeviceTraits&) const = default;
};

}  // namespace lockstep::runtime

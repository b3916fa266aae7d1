// The tree of a deterministic run: the global batch is divided into lanes, and gradients of lanes are summed pairwise.
// Invariant: the same bits on any number of ranks that divides the lanes. A rank sums its own lanes like a binary
// counter; the synchronizer continues that tree over ranks.
// Used by the trainer for deterministic runs.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/slice.hpp"
#include "runtime/device.hpp"

namespace lockstep::parallel {

/// Throws core::Error (usage) unless `n_lanes` is a power of two that `n_ranks` divides.
void require_lanes(int n_lanes, int n_ranks);

/// The samples of lane `lane`, within the global batch; the lanes of a rank together are the samples that
/// data::BatchPlan gives it.
[[nodiscard]] core::Slice lane_samples(std::size_t global_batch, int n_lanes, int lane) noexcept;

/// Sums a value of each lane of the rank, such as their losses, by the same tree. A power of two of them, at least one.
[[nodiscard]] double sum_lanes(std::span<const double> lanes) noexcept;

/// The gradients of one rank's lanes, which it computes one after another.
class Lanes {
 public:
  /// `gradients`: the synchronizer's, where each lane leaves its own and the rank's sum ends up.
  Lanes(int n_lanes, int rank, int n_ranks, std::span<float> gradients);

  /// The lanes of this rank, out of all: [first(), first() + n_local()).
  [[nodiscard]] int first() const noexcept { return first_; }
  [[nodiscard]] int n_local() const noexcept { return n_local_; }

  /// To be called for 0, 1, ... n_local() - 1 in turn, each when its gradients are complete; adds up finished pairs.
  void lane_done(int local);

 private:
  int first_;
  int n_local_;
  std::vector<runtime::Buffer> memory_{};
  std::span<float> gradients_;
  std::vector<std::span<float>> waiting_{};  ///< sums that wait for their other half
};

}  // namespace lockstep::parallel

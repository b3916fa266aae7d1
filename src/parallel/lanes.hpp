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

/// Returns the samples of lane `lane`, within the global batch; the lanes of a rank together are the samples that
/// data::BatchPlan gives it.
[[nodiscard]] core::Slice lane_samples(std::size_t global_batch, int n_lanes, int lane) noexcept;

/// Sums one value per lane of the rank, such as its loss, by the same tree. The number of lanes is a power of two.
[[nodiscard]] double sum_lanes(std::span<const double> lanes) noexcept;

/// The gradients of one rank's lanes, which it computes one after another.
class Lanes {
 public:
  /// `gradients` is the synchronizer's array: each lane writes its gradients there, and the rank's sum ends up there.
  Lanes(int n_lanes, int rank, int n_ranks, std::span<float> gradients);

  /// The lanes of this rank, out of all: [first(), first() + n_local()).
  [[nodiscard]] int first() const noexcept { return first_; }
  [[nodiscard]] int n_local() const noexcept { return n_local_; }

  /// Call for 0, 1, ... n_local() - 1 in turn, when the lane's gradients are complete; adds up finished pairs.
  void lane_done(int local);

 private:
  int first_;
  int n_local_;
  std::vector<runtime::Buffer> memory_{};
  std::span<float> gradients_;
  std::vector<std::span<float>> waiting_{};  ///< sums that wait for their other half
};

}  // namespace lockstep::parallel

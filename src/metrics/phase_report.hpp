// Phase times of all ranks in one table: minimum, mean, maximum, and the rank of the maximum.
// Invariant: among equal times the lowest rank is named.
// Used by the trainer (progress line, final report, log).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "metrics/phase_timers.hpp"
#include "runtime/communicator.hpp"
#include "runtime/topology.hpp"

namespace lockstep::metrics {

struct PhaseRow {
  Phase phase = Phase::other;
  double min_s = 0;
  double mean_s = 0;
  double max_s = 0;
  int max_rank = 0;
  std::string max_host{};
};

struct PhaseReport {
  std::vector<PhaseRow> rows{};  ///< one per phase, in the order of all_phases; empty except at rank 0

  /// 0 if there are no rows.
  [[nodiscard]] double mean_s(Phase phase) const noexcept;
  /// The mean over ranks of the time of all phases.
  [[nodiscard]] core::Seconds total() const noexcept;
};

/// `by_rank` is in rank order, not empty; `places` has as many entries.
[[nodiscard]] PhaseReport report_phases(std::span<const PhaseTimes> by_rank, std::span<const runtime::Place> places);

/// Collective: report_phases at rank 0, an empty report elsewhere.
[[nodiscard]] PhaseReport reduce_phases(const runtime::Communicator& world, const runtime::Topology& topology,
                                        const PhaseTimes& mine);

}  // namespace lockstep::metrics

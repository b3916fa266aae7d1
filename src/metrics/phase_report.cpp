#include "metrics/phase_report.hpp"

#include "core/error.hpp"

namespace lockstep::metrics {
namespace {

PhaseRow row_of(Phase phase, std::span<const PhaseTimes> by_rank, std::span<const runtime::Place> places) {
  PhaseRow row{.phase = phase, .min_s = by_rank[0][phase], .max_s = by_rank[0][phase]};
  double sum = 0;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    const double seconds = by_rank[rank][phase];
    sum += seconds;
    if (seconds < row.min_s) row.min_s = seconds;
    if (seconds > row.max_s) {
      row.max_s = seconds;
      row.max_rank = static_cast<int>(rank);
    }
  }
  row.mean_s = sum / static_cast<double>(by_rank.size());
  row.max_host = places[static_cast<std::size_t>(row.max_rank)].host;
  return row;
}

}  // namespace

double PhaseReport::mean_s(Phase phase) const noexcept {
  return rows.empty() ? 0 : rows[static_cast<std::size_t>(phase)].mean_s;
}

core::Seconds PhaseReport::total() const noexcept {
  core::Seconds sum;
  for (const PhaseRow& row : rows) sum.value += row.mean_s;
  return sum;
}

PhaseReport report_phases(std::span<const PhaseTimes> by_rank, std::span<const runtime::Place> places) {
  core::require(!by_rank.empty() && by_rank.size() == places.size(), "every rank has phase times and a place");
  PhaseReport report;
  for (const Phase phase : all_phases) report.rows.push_back(row_of(phase, by_rank, places));
  return report;
}

PhaseReport reduce_phases(const runtime::Communicator& world, const runtime::Topology& topology,
                          const PhaseTimes& mine) {
  const std::vector<PhaseTimes> all = runtime::gather_values(world, std::span<const PhaseTimes>{&mine, 1});
  return all.empty() ? PhaseReport{} : report_phases(all, topology.places);
}

}  // namespace lockstep::metrics

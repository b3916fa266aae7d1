#include "metrics/step_statistics.hpp"

#include <algorithm>
#include <vector>

#include "core/error.hpp"

namespace lockstep::metrics {
namespace {

/// Returns maxima by column over rows of `n` values.
std::vector<double> maxima(std::span<const double> rows, std::size_t n) {
  core::require(n > 0 && rows.size() % n == 0, "all ranks time the same steps");
  std::vector<double> most(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(n));
  for (std::size_t i = n; i < rows.size(); ++i) most[i % n] = std::max(most[i % n], rows[i]);
  return most;
}

}  // namespace

StepStatistics::StepStatistics(std::uint64_t n_warmup_steps, std::size_t most_kept)
    : n_warmup_steps_{n_warmup_steps}, kept_s_{most_kept} {
  core::require(most_kept >= 2 && most_kept % 2 == 0, "the number of kept steps is even");
}

void StepStatistics::add(const PhaseTimes& lap, std::uint64_t n_samples) {
  if (n_warmup_steps_ > 0) {
    --n_warmup_steps_;
    return;
  }
  ++n_steps_;
  n_samples_ += n_samples;
  phases_ += lap;
  kept_s_.add(lap.of_steps().value);
}

void StepStatistics::clear() noexcept {
  n_warmup_steps_ = 0;
  n_steps_ = 0;
  n_samples_ = 0;
  phases_ = {};
  kept_s_.clear();
}

std::optional<StepSummary> StepStatistics::reduce(const runtime::Communicator& world) const {
  if (n_steps_ == 0) return std::nullopt;
  // The total first, then the steps that were kept: one row per rank.
  std::vector<double> row{phases_.of_steps().value};
  row.insert(row.end(), kept_s_.values().begin(), kept_s_.values().end());
  const std::vector<double> rows = runtime::gather_values(world, std::span<const double>{row});
  if (rows.empty()) return std::nullopt;
  const std::vector<double> most = maxima(rows, row.size());
  return StepSummary{.n_steps = n_steps_,
                     .n_samples = n_samples_,
                     .time = {most.front()},
                     .step_s = core::summarize(std::span{most}.subspan(1))};
}

}  // namespace lockstep::metrics

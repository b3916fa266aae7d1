#include "reduce_all/visits.hpp"

#include <algorithm>
#include <utility>

#include "core/statistics.hpp"
#include "reduce_all/sizes.hpp"
#include "reduce_all/slowest.hpp"
#include "runtime/interrupt.hpp"

namespace lockstep::reduce_all {
namespace {

constexpr double visit_seconds = 0.01;
constexpr int fewest_samples_of_visit = 3;
constexpr int most_samples_of_visit = 200;
constexpr std::uint64_t visits_stream = 1;  // of the seed; the sweep uses the first

// As many samples as fit into the time of a visit.
Pace visit_pace(const Options& options, const Contender& contender) {
  Pace pace = choose_pace(options, contender.estimate, contender.barrier);
  const double sample_seconds = std::max(contender.estimate * pace.block + contender.barrier, 1e-9);
  pace.n_samples = std::clamp(static_cast<int>(std::min(visit_seconds / sample_seconds, 1e6)), fewest_samples_of_visit,
                              most_samples_of_visit);
  return pace;
}

Options without_checks(Options options) {
  options.check = 0;
  options.warmup_iterations = std::min(options.warmup_iterations, 2);
  return options;
}

}  // namespace

Visits::Visits(const Job& job, CoreWatch& cores, const core::Timer& watch)
    : job_{job},
      options_{without_checks(job.options)},
      cores_{cores},
      watch_{watch},
      order_{job.options.seed, visits_stream} {}

std::vector<Visited> Visits::make() {
  for (int i = 0; i < options_.visits; ++i) {
    job_.progress.enter(runtime::Activity::setup);
    BufferPool pool{largest_size(job_.calls), options_.buffers, options_.in_place, job_.cache, job_.registration};
    for (const comm::Call& call : job_.calls) {
      if (is_over()) return std::move(visited_);
      visit(call, pool);
    }
  }
  return std::move(visited_);
}

// Collective.
bool Visits::is_over() {
  signal_ = runtime::agree_on_interrupt(job_.world);
  const bool is_spent = options_.max_time.value > 0 && watch_.elapsed() >= options_.max_time;
  return runtime::broadcast_value(job_.world, is_spent) || signal_ != 0;
}

void Visits::visit(const comm::Call& call, BufferPool& pool) {
  job_.progress.enter(runtime::Activity::setup);
  std::vector<Contender> contenders = make_contenders(call, pool);
  for (const Contender& contender : contenders) visits_of(call, contender.name);  // in the order of the table
  core::shuffle(contenders, order_);
  Meter meter{options_, job_.world, job_.progress, pool, call};
  cores_.settle();
  for (Contender& contender : contenders) time(meter, contender);
  if (cores_.have_moved()) return;
  job_.progress.enter(runtime::Activity::finish);
  keep(call, contenders);
}

// `auto` takes part only if the algorithm that it runs is not visited anyway.
std::vector<Contender> Visits::make_contenders(const comm::Call& call, BufferPool& pool) const {
  std::vector<Contender> contenders;
  std::vector<const comm::Algorithm*> visited;
  for (const Participant& participant : job_.participants) {
    const comm::Algorithm* algorithm = &participant.runs(call, job_.transport, job_.groups.devices());
    if (std::ranges::find(visited, algorithm) != visited.end()) continue;
    if (comm::obstacle(*algorithm, call, job_.transport, job_.groups.devices())) continue;
    visited.push_back(algorithm);
    contenders.push_back({.name = participant.name(), .runner = job_.groups.make_runner(*algorithm, call, pool)});
  }
  return contenders;
}

void Visits::time(Meter& meter, Contender& contender) {
  meter.warm_up(contender, [] { return false; });
  const Pace first_guess = runtime::broadcast_value(job_.world, visit_pace(options_, contender));
  if (first_guess.block > 1) meter.calibrate(contender, first_guess.block);
  contender.pace = runtime::broadcast_value(job_.world, visit_pace(options_, contender));
  const int first = std::min(contender.pace.n_samples, fewest_samples_of_visit);
  meter.run_batch(contender, first);
  // On shared cores a sample may take a hundred times as long as the estimate.
  const double affordable = visit_seconds / (contender.spent / first) - first;
  const int rest = runtime::broadcast_value(
      job_.world, static_cast<int>(std::clamp(affordable, 0.0, static_cast<double>(contender.pace.n_samples - first))));
  if (rest > 0) meter.run_batch(contender, rest);
}

// Collective: rank 0 keeps the median of the slowest rank's times.
void Visits::keep(const comm::Call& call, std::vector<Contender>& contenders) {
  const double farthest_ns = cores_.is_on() ? cores_.at_first().farthest_ns : 0;
  for (Contender& contender : contenders) {
    static_cast<void>(keep_slowest(job_.transport, contender.samples));
    if (job_.world.rank() != 0) continue;
    Visited& visited = visits_of(call, contender.name);
    visited.time_us.push_back(core::summarize(contender.samples).median * 1e6);
    visited.core_round_trip_ns.push_back(farthest_ns > 0 ? std::optional{farthest_ns} : std::nullopt);
  }
}

Visited& Visits::visits_of(const comm::Call& call, std::string_view algorithm) {
  const auto known = std::ranges::find_if(visited_, [&](const Visited& v) {
    return v.call.n_elements == call.n_elements && v.call.dtype == call.dtype && v.call.op == call.op &&
           v.algorithm == algorithm;
  });
  if (known != visited_.end()) return *known;
  return visited_.emplace_back(Visited{.call = call, .algorithm = std::string{algorithm}});
}

}  // namespace lockstep::reduce_all

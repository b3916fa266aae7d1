#include "reduce_all/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <set>
#include <utility>

#include "core/statistics.hpp"
#include "reduce_all/limit.hpp"
#include "reduce_all/sizes.hpp"
#include "reduce_all/slowest.hpp"
#include "runtime/interrupt.hpp"

namespace lockstep::reduce_all {
namespace {

// Reading what others just wrote needs another start(), so its runs cannot follow one another.
Pace pace_of(const Options& options, const Contender& contender) {
  Pace pace = choose_pace(options, contender.estimate, contender.barrier);
  if (contender.role == Role::reading) pace.block = 1;
  return pace;
}

// All ranks get rank 0's paces.
std::vector<Pace> decide_paces(const Options& options, const runtime::Communicator& world,
                               const std::vector<Contender>& contenders) {
  std::vector<Pace> paces;
  for (const Contender& contender : contenders) paces.push_back(pace_of(options, contender));
  world.broadcast(std::as_writable_bytes(std::span{paces}));
  return paces;
}

// Drops samples, checks and time of a try that does not count; keeps wrong elements.
void start_afresh(std::vector<Contender>& contenders) {
  for (Contender& contender : contenders) {
    contender.samples.clear();
    contender.samples_on_device.clear();
    contender.n_done = 0;
    contender.spent = 0;
  }
}

// Keeps the fastest of several probes with one role.
void keep_fastest(LimitTimes& limit, const Contender& probe) {
  core::Seconds& kept = probe.role == Role::copying   ? limit.copying
                        : probe.role == Role::reading ? limit.reading
                                                      : limit.exchanging;
  const core::Seconds time{core::summarize(probe.samples).median};
  kept = kept.value > 0 ? std::min(kept, time) : time;
}

std::string describe_call(const comm::Call& call) {
  return fmt::format("{} {} {}", core::format_bytes(call.bytes()), core::name(call.dtype), comm::name(call.op));
}

}  // namespace

Sweep::Sweep(const Job& job, CoreWatch& cores, Report* report)
    : job_{job},
      cores_{cores},
      report_{report},
      pool_{largest_size(job.calls), job.options.buffers, job.options.in_place, job.cache, job.registration},
      exchanged_{job.links == nullptr ? runtime::Buffer{}
                                      : runtime::Buffer{{2 * largest_exchange(job.calls, job.world.n_ranks()).value},
                                                        runtime::Memory::device}},
      order_{job.options.seed},
      watch_{job.clock} {}

Outcome Sweep::run() {
  for (const comm::Call& call : job_.calls) {
    if (!may_go_on(call) || !measure_call(call)) break;
    has_measured_ = true;
  }
  if (report_ != nullptr && report_->rows().empty()) outcome_.is_complete = false;
  return outcome_;
}

// Collective: whether --max-time is over, by rank 0's clock.
bool Sweep::is_time_spent() {
  if (job_.options.max_time.value <= 0) return false;
  return runtime::broadcast_value(job_.world, watch_.elapsed() >= job_.options.max_time);
}

// Collective. The first size is always measured.
bool Sweep::may_go_on(const comm::Call& next) {
  if (!has_measured_ || !is_time_spent()) return true;
  outcome_.is_complete = false;
  outcome_.cut_short_by = fmt::format("--max-time {} is over; nothing was measured from {} on",
                                      core::format_seconds(job_.options.max_time), describe_call(next));
  return false;
}

// Collective: whether a signal reached any rank. All ranks store the same one, whichever rank it reached.
bool Sweep::is_interrupted() {
  outcome_.signal = runtime::agree_on_interrupt(job_.world);
  return outcome_.signal != 0;
}

// The table's last lines, for the case that a rank stalls in `call`.
std::string Sweep::closing_if_stalled(const comm::Call& call) const {
  Outcome outcome = outcome_;
  outcome.cut_short_by = fmt::format("a rank stalled, or a signal came during a call; nothing was measured from {} on",
                                     describe_call(call));
  return text_closing(report_->rows(), outcome);
}

// Returns false if a signal ended it; the current call is then dropped.
bool Sweep::measure_call(const comm::Call& call) {
  if (report_ != nullptr) job_.progress.set_last_words(closing_if_stalled(call));
  job_.progress.enter(runtime::Activity::setup);
  std::vector<Contender> contenders = make_contenders(call);
  Meter meter{job_.options, job_.world, job_.progress, pool_, call};
  if (!measure_until_cores_stay(meter, contenders)) {
    outcome_.is_complete = false;
    outcome_.cut_short_by =
        fmt::format("{}; nothing was measured from {} on", name_end(outcome_.signal), describe_call(call));
    return false;
  }
  job_.progress.enter(runtime::Activity::finish);
  collect(call, contenders);
  return true;
}

// Repeats a measurement during which cores moved, at most a few times. Returns false if a signal ended it.
bool Sweep::measure_until_cores_stay(Meter& meter, std::vector<Contender>& contenders) {
  for (int n_tries = 1;; ++n_tries) {
    const core::Timer watch{job_.clock};
    cores_.settle();
    if (!set_pace(meter, contenders)) return false;
    const bool may_repeat =
        runtime::broadcast_value(job_.world, may_measure_again(job_.options, n_tries, {repeated_seconds_}));
    const Ended ended = run_rounds(meter, contenders, may_repeat);
    if (ended != Ended::by_moving_cores) return ended == Ended::done;
    start_afresh(contenders);
    repeated_seconds_ += watch.elapsed().value;
    ++outcome_.n_repeated;
  }
}

// Reading for the limit. Between nodes vectors travel in messages, and nothing determines what a rank must read from a
// core of its node.
core::Bytes Sweep::bytes_to_read(const comm::Call& call) const {
  if (!cores_.is_on() || job_.transport.n_nodes() > 1) return {};
  return reduce_all::bytes_to_read(call, job_.world.n_ranks(), cores_.largest_read());
}

std::vector<Contender> Sweep::make_contenders(const comm::Call& call) {
  std::vector<Contender> contenders;
  for (const Participant& participant : job_.participants) {
    const comm::Algorithm& algorithm = participant.runs(call, job_.transport, job_.groups.devices());
    if (comm::obstacle(algorithm, call, job_.transport, job_.groups.devices())) continue;
    const auto same = std::ranges::find(contenders, algorithm.name, &Contender::name);
    contenders.push_back(
        {.name = participant.name(),
         .chosen = participant.is_auto() ? std::optional{algorithm.name} : std::nullopt,
         .runner = same != contenders.end() ? same->runner : job_.groups.make_runner(algorithm, call, pool_)});
  }
  add_probes(call, contenders);
  return contenders;
}

// Adds the probes by which the limit is measured.
void Sweep::add_probes(const comm::Call& call, std::vector<Contender>& contenders) {
  if (!job_.groups.is_on_host()) {
    contenders.push_back({.name = "copy", .runner = make_device_copy(), .role = Role::copying});
    return add_exchanges(call, contenders);
  }
  for (const CopyKind kind : {CopyKind::cached, CopyKind::streaming})
    contenders.push_back({.name = "copy", .runner = make_runner(make_copy_plan(kind)), .role = Role::copying});
  if (const core::Bytes bytes = bytes_to_read(call); bytes.value > 0)
    contenders.push_back({.name = "reading",
                          .runner = make_runner(make_reading_plan(cores_.probe(), bytes), true),
                          .role = Role::reading});
}

// Adds an exchange with one neighbour, and on one node one with all: links between pairs of GPUs carry more with all,
// shared links with one.
void Sweep::add_exchanges(const comm::Call& call, std::vector<Contender>& contenders) {
  if (job_.links == nullptr) return;
  const std::size_t n_bytes = bytes_to_exchange(call, job_.world.n_ranks()).value;
  const runtime::DeviceSpan<std::byte> all = exchanged_.on_device<std::byte>();
  const CallBuffers buffers{all.subspan(0, n_bytes), all.subspan(all.size() / 2, n_bytes)};
  const int most_neighbours = job_.topology.n_nodes == 1 ? job_.world.n_ranks() - 1 : 1;
  for (const int n_neighbours : std::set{1, most_neighbours})
    contenders.push_back(
        {.name = "exchange", .runner = make_exchange(*job_.links, buffers, n_neighbours), .role = Role::exchanging});
}

// Returns false if a signal ended it.
bool Sweep::set_pace(Meter& meter, std::vector<Contender>& contenders) {
  for (Contender& contender : contenders) {
    if (is_interrupted()) return false;
    meter.warm_up(contender, [this] { return is_interrupted() || is_time_spent(); });
  }
  if (is_interrupted()) return false;
  const std::vector<Pace> first_guess = decide_paces(job_.options, job_.world, contenders);
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    if (first_guess[i].block > 1) meter.calibrate(contenders[i], first_guess[i].block);
  }
  const std::vector<Pace> paces = decide_paces(job_.options, job_.world, contenders);
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    contenders[i].pace = paces[i];
    contenders[i].samples.reserve(static_cast<std::size_t>(paces[i].n_samples));
  }
  return true;
}

// A batch of every contender per round, in another order each round. Ends at once if cores have moved and `may_repeat`.
Ended Sweep::run_rounds(Meter& meter, std::vector<Contender>& contenders, bool may_repeat) {
  std::vector<std::size_t> order(contenders.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto has_samples_left = [](const Contender& c) { return c.n_done < c.pace.n_samples; };
  while (std::any_of(contenders.begin(), contenders.end(), has_samples_left)) {
    core::shuffle(order, order_);
    for (const std::size_t i : order) {
      if (has_samples_left(contenders[i]) && !run_turn(meter, contenders[i])) return Ended::by_signal;
    }
    if (cores_.have_moved() && may_repeat && !is_time_spent()) return Ended::by_moving_cores;
  }
  return Ended::done;
}

// Runs a batch and the checked runs that are due after it. Returns false if a signal ended it.
bool Sweep::run_turn(Meter& meter, Contender& contender) {
  if (is_interrupted()) return false;
  const bool is_spent = is_time_spent();
  const int n_left = contender.pace.n_samples - contender.n_done;
  const int my_plan = is_spent ? n_left : plan_batch(contender);
  const auto [planned, affordable] = runtime::broadcast_value(
      job_.world, std::array{my_plan, affordable_samples(job_.options, contender, my_plan, is_spent)});
  if (is_spent && affordable < planned) {
    outcome_.is_complete = false;
    outcome_.cut_short_by = fmt::format("--max-time {} is over; the last size has fewer samples",
                                        core::format_seconds(job_.options.max_time));
  }
  if (affordable > 0) meter.run_batch(contender, affordable);
  const std::int64_t n_before = checks_due(contender);
  contender.n_done += planned;
  return contender.role != Role::algorithm || run_checks(meter, contender, checks_due(contender) - n_before);
}

// The checked runs are spread evenly over the samples.
std::int64_t Sweep::checks_due(const Contender& contender) const {
  return std::int64_t{job_.options.check} * contender.n_done / contender.pace.n_samples;
}

// Returns false if a signal ended it.
bool Sweep::run_checks(Meter& meter, Contender& contender, std::int64_t n) {
  for (std::int64_t i = 0; i < n && (contender.n_checks == 0 || !is_time_spent()); ++i) {
    if (is_interrupted()) return false;
    meter.run_checked(contender);
  }
  return true;
}

// Rank 0 gets the results of every contender and every rank's first wrong element; all ranks get their number.
void Sweep::collect(const comm::Call& call, std::vector<Contender>& contenders) {
  std::vector<Measured> measured;
  std::vector<WrongElement> wrong;
  std::uint64_t n_wrong = 0;
  LimitTimes limit{};
  for (Contender& contender : contenders) {
    const Tally mine{keep_slowest(job_.transport, contender.samples), contender.mismatch};
    if (!contender.samples_on_device.empty())
      static_cast<void>(keep_slowest(job_.transport, contender.samples_on_device));
    const std::vector<Tally> tallies = runtime::gather_values(job_.world, std::span{&mine, 1});
    if (report_ == nullptr) continue;
    if (contender.role != Role::algorithm) {
      keep_fastest(limit, contender);
      continue;
    }
    measured.push_back(describe(call, contender, tallies));
    n_wrong += measured.back().n_wrong.value_or(0);
    const auto first = std::ranges::find_if(tallies, [](const Tally& t) { return t.mismatch.n_wrong > 0; });
    if (first == tallies.end()) continue;
    const auto rank = static_cast<std::size_t>(first - tallies.begin());
    wrong.push_back({.algorithm = std::string{contender.name},
                     .call = call,
                     .rank = static_cast<int>(rank),
                     .host = job_.topology.places[rank].host,
                     .mismatch = first->mismatch});
  }
  report_rows(call, limit, measured);
  for (const WrongElement& element : wrong) report_->add_wrong(element);
  outcome_.n_wrong += runtime::broadcast_value(job_.world, n_wrong);
}

Measured Sweep::describe(const comm::Call& call, Contender& contender, std::span<const Tally> tallies) const {
  const auto slowest = std::ranges::max_element(tallies, {}, &Tally::n_slowest);
  std::uint64_t n_wrong = 0;
  for (const Tally& tally : tallies) n_wrong += tally.mismatch.n_wrong;
  return {.call = call,
          .algorithm = std::string{contender.name},
          .chosen = std::optional<std::string>{contender.chosen},
          .in_place = job_.options.in_place,
          .n_ranks = job_.world.n_ranks(),
          .times = {std::move(contender.samples), static_cast<int>(slowest - tallies.begin())},
          .on_device = std::move(contender.samples_on_device),
          .n_wrong = job_.options.check > 0 ? std::optional{n_wrong} : std::nullopt,
          .keep_samples = job_.options.samples};
}

// Collective.
void Sweep::report_rows(const comm::Call& call, LimitTimes limit, std::vector<Measured>& measured) {
  const DistanceSeen distance{.before_ns = cores_.at_first().farthest_ns,
                              .after_ns = cores_.at_last().farthest_ns,
                              .has_changed = cores_.has_moved()};
  const double shortest_ns = cores_.shortest().farthest_ns;
  if (report_ == nullptr) return;
  limit.one_way = {shortest_ns / 2 * 1e-9};
  limit.read = bytes_to_read(call);
  if (job_.links != nullptr) {
    limit.exchanged = bytes_to_exchange(call, job_.world.n_ranks());
    limit.switches_add = comm::may_be_added_up_on_the_way(call, job_.groups.devices());
  }
  std::vector<Row> rows;
  for (Measured& m : measured) {
    m.limit = find_limit(call, limit, m.n_ranks);
    if (cores_.is_on()) m.distance = distance;
    rows.push_back(make_row(m));
  }
  report_->add(rows);
}

}  // namespace lockstep::reduce_all

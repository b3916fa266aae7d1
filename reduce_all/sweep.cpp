#include "reduce_all/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "core/statistics.hpp"
#include "reduce_all/limit.hpp"
#include "reduce_all/sizes.hpp"
#include "runtime/interrupt.hpp"

namespace lockstep::reduce_all {
namespace {

constexpr int most_rounds = 8;

// Part `round` of `n` things spread evenly over `n_rounds`.
int share(int n, int round, int n_rounds) {
  const auto until = [n, n_rounds](int r) { return static_cast<int>(static_cast<long>(n) * r / n_rounds); };
  return until(round + 1) - until(round);
}

// Rank 0's paces for all.
std::vector<Pace> decide_paces(const Options& options, const runtime::Communicator& world,
                               const std::vector<Contender>& contenders) {
  std::vector<Pace> paces;
  for (const Contender& contender : contenders)
    paces.push_back(choose_pace(options, contender.estimate, contender.barrier));
  world.broadcast(std::as_writable_bytes(std::span{paces}));
  return paces;
}

std::string describe_call(const comm::Call& call) {
  return fmt::format("{} {} {}", core::format_bytes({call.n_elements * call.element_size()}), core::name(call.dtype),
                     comm::name(call.op));
}

core::Bytes largest_size(const Options& options) {
  core::Bytes largest;
  for (const comm::Call& call : calls(options))
    largest = std::max(largest, core::Bytes{call.n_elements * call.element_size()});
  return largest;
}

}  // namespace

std::vector<comm::Call> calls(const Options& options) {
  const bool reduces = options.collective != comm::Collective::all_gather;
  const std::vector<comm::ReduceOp> ops = reduces ? options.op : std::vector{comm::ReduceOp::sum};
  std::vector<comm::Call> result;
  for (const core::DType dtype : options.dtype) {
    const std::vector<core::Bytes> all_sizes = sizes(options, dtype);
    for (const comm::ReduceOp op : ops) {
      for (const core::Bytes bytes : all_sizes)
        result.push_back({options.collective, dtype, op, bytes.value / core::size_of(dtype)});
    }
  }
  return result;
}

Sweep::Sweep(const Job& job, Report* report)
    : job_{job},
      report_{report},
      pool_{largest_size(job.options), job.options.buffers, job.options.in_place},
      order_{job.options.seed} {}

Outcome Sweep::run() {
  for (const comm::Call& call : calls(job_.options)) {
    if (!may_go_on(call) || !measure_call(call)) break;
    has_measured_ = true;
  }
  if (report_ != nullptr && report_->rows().empty()) outcome_.is_complete = false;
  return outcome_;
}

// Collective: false once the time is spent. Rank 0's clock counts for all.
bool Sweep::may_go_on(const comm::Call& next) {
  const bool is_spent = has_measured_ && job_.options.max_time.value > 0 && watch_.elapsed() >= job_.options.max_time;
  if (!runtime::broadcast_value(job_.world, is_spent)) return true;
  outcome_.is_complete = false;
  outcome_.cut_short_by = fmt::format("--max-time {} is spent; nothing from {} on is measured",
                                      core::format_seconds(job_.options.max_time), describe_call(next));
  return false;
}

// Collective: whether a signal reached any rank. All remember the same one, whichever rank it reached.
bool Sweep::is_interrupted() {
  outcome_.signal = runtime::agree_on_interrupt(job_.world);
  return outcome_.signal != 0;
}

// The table's last lines, should a rank stall in `call`.
std::string Sweep::closing_if_stalled(const comm::Call& call) const {
  Outcome outcome = outcome_;
  outcome.cut_short_by = fmt::format("a rank stalled; nothing from {} on is measured", describe_call(call));
  return text_closing(report_->rows(), outcome);
}

// False if a signal ended it; the call in hand is then dropped.
bool Sweep::measure_call(const comm::Call& call) {
  if (report_ != nullptr) job_.progress.set_last_words(closing_if_stalled(call));
  job_.progress.enter(runtime::Phase::setup);
  std::vector<Contender> contenders = make_contenders(call);
  Meter meter{job_.options, job_.world, job_.progress, pool_, call};
  set_pace(meter, contenders);
  if (!run_rounds(meter, contenders)) {
    outcome_.is_complete = false;
    outcome_.cut_short_by =
        fmt::format("{}; nothing from {} on is measured",
                    outcome_.signal == SIGINT ? "interrupted (SIGINT)" : "terminated (SIGTERM)", describe_call(call));
    return false;
  }
  job_.progress.enter(runtime::Phase::finish);
  collect(call, contenders);
  collect_wrong(call, contenders);
  return true;
}

std::vector<Contender> Sweep::make_contenders(const comm::Call& call) {
  std::vector<Contender> contenders;
  for (const comm::Algorithm* algorithm : job_.algorithms)
    contenders.push_back({.name = algorithm->name, .plan = comm::make_plan(*algorithm, job_.transport, call)});
  contenders.push_back({.name = "copy", .plan = make_copy_plan(CopyKind::cached), .is_copy = true});
  contenders.push_back({.name = "streaming copy", .plan = make_copy_plan(CopyKind::streaming), .is_copy = true});
  return contenders;
}

void Sweep::set_pace(Meter& meter, std::vector<Contender>& contenders) {
  for (Contender& contender : contenders) meter.warm_up(contender);
  const std::vector<Pace> first_guess = decide_paces(job_.options, job_.world, contenders);
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    if (first_guess[i].block > 1) meter.calibrate(contenders[i], first_guess[i].block);
  }
  const std::vector<Pace> paces = decide_paces(job_.options, job_.world, contenders);
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    contenders[i].pace = paces[i];
    contenders[i].samples.reserve(static_cast<std::size_t>(paces[i].n_samples));
  }
}

// A batch of every contender per round, in an order of its own each round.
bool Sweep::run_rounds(Meter& meter, std::vector<Contender>& contenders) {
  std::vector<std::size_t> order(contenders.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (int round = 0; round < most_rounds; ++round) {
    core::shuffle(order, order_);
    for (const std::size_t i : order) {
      if (is_interrupted()) return false;
      const int planned = share(contenders[i].pace.n_samples, round, most_rounds);
      const int n_samples =
          runtime::broadcast_value(job_.world, affordable_samples(job_.options, contenders[i], planned));
      const int n_checks = share(job_.options.check, round, most_rounds);
      if (n_samples + n_checks > 0) meter.run_batch(contenders[i], n_samples, n_checks);
    }
  }
  return true;
}

void Sweep::collect(const comm::Call& call, const std::vector<Contender>& contenders) {
  std::vector<Measured> measured;
  const bool is_checked = job_.options.check > 0;
  double copy_seconds = std::numeric_limits<double>::infinity();
  for (const Contender& contender : contenders) {
    const std::vector<double> times = runtime::gather_values(job_.world, std::span<const double>{contender.samples});
    const auto wrong = runtime::gather_values(job_.world, std::span{&contender.mismatch.n_wrong, 1});
    if (report_ == nullptr) continue;
    SlowestTimes slowest = slowest_times(times, contender.samples.size());
    if (contender.is_copy)
      copy_seconds = std::min(copy_seconds, core::summarize(slowest.seconds).median);
    else
      measured.push_back({.call = call,
                          .algorithm = std::string{contender.name},
                          .in_place = job_.options.in_place,
                          .n_ranks = job_.world.n_ranks(),
                          .times = std::move(slowest),
                          .n_wrong = is_checked
                                         ? std::optional{std::accumulate(wrong.begin(), wrong.end(), std::uint64_t{0})}
                                         : std::nullopt,
                          .keep_samples = job_.options.samples});
  }
  if (report_ == nullptr) return;
  const core::Bytes bytes{call.n_elements * call.element_size()};
  std::vector<Row> rows;
  for (Measured& m : measured) {
    m.limit_GBps = limit_GBps(call.collective, bytes, {copy_seconds}, m.n_ranks);
    rows.push_back(make_row(m));
  }
  report_->add(rows);
}

// Rank 0 learns of every rank's first wrong element; all learn how many there are.
void Sweep::collect_wrong(const comm::Call& call, const std::vector<Contender>& contenders) {
  std::uint64_t n_wrong = 0;
  for (const Contender& contender : contenders) {
    const auto mismatches = runtime::gather_values(job_.world, std::span{&contender.mismatch, 1});
    bool is_shown = false;
    for (std::size_t rank = 0; rank < mismatches.size(); ++rank) {
      n_wrong += mismatches[rank].n_wrong;
      if (mismatches[rank].n_wrong == 0 || std::exchange(is_shown, true)) continue;
      report_->add_wrong({.algorithm = std::string{contender.name},
                          .call = call,
                          .rank = static_cast<int>(rank),
                          .host = job_.topology.places[rank].host,
                          .mismatch = mismatches[rank]});
    }
  }
  outcome_.n_wrong += runtime::broadcast_value(job_.world, n_wrong);
}

}  // namespace lockstep::reduce_all

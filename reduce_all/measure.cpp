#include "reduce_all/measure.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/timer.hpp"
#include "runtime/device.hpp"

namespace lockstep::reduce_all {
namespace {

constexpr double short_operation = 10e-6;
// Long enough that the spread with which ranks leave a barrier, about 0.2 us, is below 1 % of a block.
constexpr double block_seconds = 50e-6;
constexpr int most_runs_on_device = 20;  // as many as nccl-tests' --iters
constexpr double row_seconds = 0.15;
constexpr double batch_seconds = 0.1;
constexpr int fewest_batches = 8;
constexpr double fewest_samples = 8;
constexpr double fewest_once_spent = 3;  // of --max-time: a median still
constexpr double most_samples = 1000;

// Blocks are for runs below 10 us. On a device, where the host waits for a whole block, they are for all runs, so that
// all times are of one kind. Long runs need smaller blocks, because waiting is a smaller part of them.
int runs_per_block(double estimate) {
  const double seconds = std::max(estimate, 1e-9);
  if (!runtime::is_host_the_device())
    return static_cast<int>(std::clamp(row_seconds / fewest_samples / seconds, 1.0, double{most_runs_on_device}));
  return estimate < short_operation ? static_cast<int>(std::clamp(std::ceil(block_seconds / seconds), 1.0, 10000.0))
                                    : 1;
}

}  // namespace

Pace choose_pace(const Options& options, double estimate, double barrier) {
  // Dirty and cold buffers are prepared before every run, so runs cannot follow one another directly.
  const bool in_blocks = options.buffers == BufferMode::hot;
  Pace pace{.block = in_blocks ? runs_per_block(estimate) : 1, .n_samples = options.iterations};
  if (pace.n_samples == 0)
    pace.n_samples = static_cast<int>(
        std::clamp(row_seconds / std::max(estimate * pace.block + barrier, 1e-9), fewest_samples, most_samples));
  return pace;
}

int plan_batch(const Contender& contender) {
  const Pace& pace = contender.pace;
  const double seconds = contender.samples.empty() ? contender.estimate * pace.block + contender.barrier
                                                   : contender.spent / static_cast<double>(contender.samples.size());
  const int share = (pace.n_samples + fewest_batches - 1) / fewest_batches;
  const double in_time = std::clamp(batch_seconds / std::max(seconds, 1e-9), 1.0, 1e7);
  return std::min({pace.n_samples - contender.n_done, share, static_cast<int>(in_time)});
}

int affordable_samples(const Options& options, const Contender& contender, int planned, bool is_time_spent) {
  const auto taken = static_cast<double>(contender.samples.size());
  const bool is_obeyed = options.iterations > 0 || contender.samples.empty();
  if (is_obeyed && !is_time_spent) return planned;
  const double affordable = is_time_spent ? 0 : (2 * row_seconds - contender.spent) / (contender.spent / taken);
  const double needed = (is_time_spent ? fewest_once_spent : fewest_samples) - taken;
  return static_cast<int>(std::clamp(std::max(affordable, needed), 0.0, static_cast<double>(planned)));
}

bool may_measure_again(const Options& options, int n_tries, core::Seconds repeated) {
  constexpr int most_tries = 3;
  constexpr double largest_share = 0.25;
  const double limit = options.max_time.value;
  return n_tries < most_tries && (limit <= 0 || repeated.value < largest_share * limit);
}

Meter::Meter(const Options& options, const runtime::Communicator& world, Progress& progress, BufferPool& pool,
             const comm::Call& call)
    : options_{options},
      world_{world},
      progress_{progress},
      pool_{pool},
      call_{call},
      data_{{call, world.rank(), world.n_ranks(), options.seed},
            {call, world.rank(), world.n_ranks(), options.seed + 1}},
      checker_{call} {}

CallBuffers Meter::bind_next(Contender& contender) {
  const CallBuffers buffers = contender.role != Role::algorithm ? pool_.next_pair(call_.bytes().value)
                                                                : pool_.next(call_, world_.rank(), world_.n_ranks());
  contender.runner->bind(buffers);
  return buffers;
}

double Meter::time_block(Contender& contender, int block) {
  if (contender.role == Role::reading) {
    contender.runner->prepare();
    world_.barrier();
  }
  const core::Stopwatch watch;
  contender.runner->run(block);
  if (contender.role == Role::algorithm) progress_.slow_down(watch.elapsed());
  return watch.elapsed().value / block;
}

void Meter::warm_up(Contender& contender, const IsOver& is_over) {
  progress_.enter(runtime::Activity::warmup);
  const bool is_checked = options_.check > 0 && options_.warmup_iterations > 0 && contender.role == Role::algorithm;
  if (is_checked) run_checked(contender);
  checker_.fill(bind_next(contender).input, data_[0]);
  contender.estimate = std::numeric_limits<double>::infinity();
  // At least one run, for the estimate, even without a requested warm-up.
  const int n_runs = std::max(1, options_.warmup_iterations - (is_checked ? 1 : 0));
  double waited = 0;
  contender.runner->make_ready(1);
  for (int i = 0; i < n_runs && (i == 0 || !is_over()); ++i) {
    const core::Stopwatch watch;
    world_.barrier();
    waited += watch.elapsed().value;
    contender.barrier = waited / (i + 1);
    contender.estimate = std::min(contender.estimate, time_block(contender, 1));
    progress_.beat();
  }
}

void Meter::calibrate(Contender& contender, int block) {
  contender.runner->make_ready(block);
  for (int i = 0; i < 3; ++i) {
    world_.barrier();
    contender.estimate = std::min(contender.estimate, time_block(contender, block));
    progress_.beat();
  }
}

void Meter::run_batch(Contender& contender, int n_samples) {
  progress_.enter(runtime::Activity::timing);
  CallBuffers buffers = bind_next(contender);
  contender.runner->make_ready(contender.pace.block);
  // In place, values grow from run to run. That costs no time, but every batch starts afresh.
  if (options_.in_place) checker_.fill(buffers.input, data_[0]);
  // One untimed run brings the buffers back into the caches after another contender, if they fit.
  const std::size_t bytes = 2 * call_.bytes().value;
  if (options_.buffers != BufferMode::cold && bytes <= pool_.cache().value) contender.runner->run(1);
  world_.barrier();
  const core::Stopwatch watch;
  for (int i = 0; i < n_samples; ++i) {
    if (options_.buffers == BufferMode::cold) buffers = bind_next(contender);
    if (options_.buffers == BufferMode::dirty) checker_.fill(buffers.input, data_[0]);
    if (options_.sync == Sync::barrier) world_.barrier();
    contender.samples.push_back(time_block(contender, contender.pace.block));
    progress_.beat();
  }
  contender.spent += watch.elapsed().value;
  if (contender.role == Role::algorithm) time_on_device(contender, n_samples);
}

// Measures a few more calls, between two events each, so that the events do not affect times by the host's clock. Such
// a call follows others in the same buffers, which are then neither cold nor dirty.
void Meter::time_on_device(Contender& contender, int n_samples) {
  if (options_.buffers != BufferMode::hot) return;
  constexpr int host_samples_per_sample = 4;
  for (int i = 0; i < n_samples; i += host_samples_per_sample) {
    if (options_.sync == Sync::barrier) world_.barrier();
    const std::optional<core::Seconds> time = contender.runner->time_on_device();
    if (!time) return;
    contender.samples_on_device.push_back(time->value);
    progress_.beat();
  }
}

void Meter::run_checked(Contender& contender) {
  progress_.enter(runtime::Activity::verification);
  const CallBuffers buffers = bind_next(contender);
  contender.runner->make_ready(1);  // which may run it, and in place that changes the input
  const TestData& data = data_[contender.n_checks++ % 2];
  checker_.poison(buffers.output, data);
  checker_.fill(buffers.input, data);  // in place this overwrites the poison where the input lies
  contender.runner->run(1);
  if (const auto wrong = progress_.take_wrong(buffers.output.size() / call_.element_size()))
    checker_.flip_bit(buffers.output, *wrong * call_.element_size());
  contender.mismatch.add(checker_.check(buffers.output, data));
}

}  // namespace lockstep::reduce_all

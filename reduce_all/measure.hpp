// Timing one plan: warm-up, calibration, batches of timed and of checked runs.
// Invariant: the timed loop allocates nothing, reduces nothing and communicates with no other rank; results are kept
// per rank.
// Used by the sweep, which interleaves the batches of several contenders.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/units.hpp"
#include "reduce_all/buffers.hpp"
#include "reduce_all/checker.hpp"
#include "reduce_all/options.hpp"
#include "reduce_all/progress.hpp"
#include "reduce_all/runner.hpp"
#include "reduce_all/verify.hpp"
#include "runtime/communicator.hpp"

namespace lockstep::reduce_all {

/// How a contender is timed, decided by rank 0 for all.
struct Pace {
  int block = 1;      ///< back-to-back runs per sample; their mean is the sample
  int n_samples = 0;  ///< in all rounds together
};

/// The purpose of measuring a contender.
enum class Role {
  algorithm,
  copying,     ///< the limit's: between two buffers of the call's whole size
  reading,     ///< the limit's: what prepare() has prepared
  exchanging,  ///< the limit's: with other GPUs, in buffers of its own
};

/// One plan that competes at one call.
struct Contender {
  std::string_view name;
  std::optional<std::string_view> chosen{};  ///< the algorithm that `auto` runs
  std::shared_ptr<Runner> runner;            ///< with that of the algorithm, if it takes part, for `auto`
  Role role = Role::algorithm;
  Pace pace{};
  double estimate = 0;  ///< seconds per run on this rank, from the warm-up
  double barrier = 0;   ///< seconds per sample that go to the barrier before it, from the warm-up
  double spent = 0;     ///< seconds its timed samples took on this rank, all waiting included
  int n_done = 0;       ///< of the pace's samples: taken, or dropped for lack of time
  int n_checks = 0;
  std::vector<double> samples{};            ///< seconds per run on this rank
  std::vector<double> samples_on_device{};  ///< by its clock; none if the host is the device
  Mismatch mismatch{};                      ///< over all checked runs on this rank
};

/// Collective: whether the run must end; the same on all ranks.
using IsOver = std::function<bool()>;

/// Times contenders of one call. All members are collective: every rank calls them in the same order.
class Meter {
 public:
  Meter(const Options& options, const runtime::Communicator& world, Progress& progress, BufferPool& pool,
        const comm::Call& call);

  /// Makes warm-up runs, the first of them checked, fewer if the run is over; sets an estimate.
  void warm_up(Contender& contender, const IsOver& is_over);
  /// Refines the estimate of an operation that is too short for one run, by `block` runs.
  void calibrate(Contender& contender, int block);
  /// Takes `n_samples` timed samples.
  void run_batch(Contender& contender, int n_samples);
  void run_checked(Contender& contender);

 private:
  CallBuffers bind_next(Contender& contender);
  double time_block(Contender& contender, int block);
  void time_on_device(Contender& contender, int n_samples);

  const Options& options_;
  const runtime::Communicator& world_;
  Progress& progress_;
  BufferPool& pool_;
  comm::Call call_;
  /// Rotated by the checked runs of a contender, so that the result of an earlier call is never correct.
  TestData data_[2];
  Checker checker_;
};

/// Rank 0's decision from its estimate. Blocks take at least 50 us for operations under 10 us, or have 20 runs on a
/// device; fewer runs if 8 such blocks exceed 0.15 s. The number of samples is the requested one or, by default, as
/// many as fit into 0.15 s, from 8 to 1000.
[[nodiscard]] Pace choose_pace(const Options& options, double estimate_seconds, double barrier_seconds = 0);

/// Rank 0's decision on the length of the next batch: an eighth of the row, or what takes 0.1 s if that is less, so
/// that the ranks can agree on an end soon after a signal.
[[nodiscard]] int plan_batch(const Contender& contender);

/// Rank 0's decision before a batch of `planned` samples: fewer if earlier ones took much longer than the pace
/// expected, as on shared cores, so that a row ends in reasonable time; never fewer than 8 in all. `-n` is obeyed until
/// `is_time_spent`, that of --max-time: then 3 are enough.
[[nodiscard]] int affordable_samples(const Options& options, const Contender& contender, int planned,
                                     bool is_time_spent = false);

/// Rank 0's decision whether a call may be measured again if its cores move: twice, and under --max-time only while
/// repeats have taken less than a quarter of it (`repeated`), because missing sizes are worse than marked ones.
[[nodiscard]] bool may_measure_again(const Options& options, int n_tries, core::Seconds repeated);

}  // namespace lockstep::reduce_all

// The run: every type, op and size; at each of them all algorithms and the limit's probe in turn, in random order.
// Invariant: every decision (pace, order, end) comes from rank 0 or the seed, so all ranks take the same.
// Used by run.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/clock.hpp"
#include "core/rng.hpp"
#include "reduce_all/buffers.hpp"
#include "reduce_all/cores.hpp"
#include "reduce_all/measure.hpp"
#include "reduce_all/participants.hpp"
#include "reduce_all/progress.hpp"
#include "reduce_all/report.hpp"
#include "runtime/communicator.hpp"
#include "runtime/topology.hpp"

namespace lockstep::reduce_all {

/// The context of a run; all of it outlives the run.
struct Job {
  const Options& options;
  const runtime::Communicator& world;
  const core::Clock& clock;  ///< of --max-time
  const runtime::Topology& topology;
  comm::Transport& transport;
  Progress& progress;
  std::span<const comm::Call> calls;
  const runtime::DeviceChoice& device;
  Groups& groups;
  core::Bytes cache;  ///< the device's largest
  std::vector<Participant> participants;
  comm::Registration registration = comm::Registration::none;  ///< in effect
  bool graph = false;                                          ///< likewise
  comm::AllConnections connections{};                          ///< of the devices' libraries
  comm::DeviceGroup* links = nullptr;  ///< exchanges over links between GPUs; null if they are not part of the limit
};

/// Rank 0's data from each rank about a contender.
struct Tally {
  std::uint32_t n_slowest = 0;  ///< samples in which no rank was slower
  Mismatch mismatch{};
};

/// How a round of measuring ended; the same on all ranks.
enum class Ended { done, by_signal, by_moving_cores };

class Sweep {
 public:
  /// `report` on rank 0, null elsewhere.
  Sweep(const Job& job, CoreWatch& cores, Report* report);

  /// Collective: measures everything, or until time is up or a signal arrives; the same outcome on all ranks.
  Outcome run();

 private:
  std::string closing_if_stalled(const comm::Call& call) const;
  bool measure_call(const comm::Call& call);
  bool measure_until_cores_stay(Meter& meter, std::vector<Contender>& contenders);
  core::Bytes bytes_to_read(const comm::Call& call) const;
  std::vector<Contender> make_contenders(const comm::Call& call);
  void add_probes(const comm::Call& call, std::vector<Contender>& contenders);
  void add_exchanges(const comm::Call& call, std::vector<Contender>& contenders);
  bool set_pace(Meter& meter, std::vector<Contender>& contenders);
  Ended run_rounds(Meter& meter, std::vector<Contender>& contenders, bool may_repeat);
  bool run_turn(Meter& meter, Contender& contender);
  std::int64_t checks_due(const Contender& contender) const;
  bool run_checks(Meter& meter, Contender& contender, std::int64_t n);
  void collect(const comm::Call& call, std::vector<Contender>& contenders);
  Measured describe(const comm::Call& call, Contender& contender, std::span<const Tally> tallies) const;
  void report_rows(const comm::Call& call, LimitTimes limit, std::vector<Measured>& measured);
  bool may_go_on(const comm::Call& next);
  bool is_interrupted();
  bool is_time_spent();

  const Job& job_;
  CoreWatch& cores_;
  Report* report_;
  BufferPool pool_;
  runtime::Buffer exchanged_;  ///< the sent bytes, then the received ones
  core::Random order_;
  core::Timer watch_;
  bool has_measured_ = false;    ///< any size
  double repeated_seconds_ = 0;  ///< spent on repeated measurements
  Outcome outcome_;
};

}  // namespace lockstep::reduce_all

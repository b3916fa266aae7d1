// Visits: all sizes again and again, each time briefly and with their own buffers and plans, for comparing results.
// Invariant: an event that lasts seconds, or concerns one buffer, affects one visit of a size and not all of them. A
// visit during which cores moved does not count. Rank 0 or the seed decides their course, so all ranks take the same.
// Used by run, after the sweep; the result file stores them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "core/rng.hpp"
#include "reduce_all/cores.hpp"
#include "reduce_all/measure.hpp"
#include "reduce_all/sweep.hpp"

namespace lockstep::reduce_all {

class Visits {
 public:
  /// `watch`: since the run began.
  Visits(const Job& job, CoreWatch& cores, const core::Timer& watch);

  /// Collective: makes `job.options.visits` of every call and algorithm, except those that --max-time or a signal cuts
  /// off. Returns all of them at rank 0, none elsewhere.
  [[nodiscard]] std::vector<Visited> make();
  /// After make(): the signal that ended it, or 0; the same on all ranks.
  [[nodiscard]] int signal() const noexcept { return signal_; }

 private:
  [[nodiscard]] bool is_over();
  void visit(const comm::Call& call, BufferPool& pool);
  [[nodiscard]] std::vector<Contender> make_contenders(const comm::Call& call, BufferPool& pool) const;
  void time(Meter& meter, Contender& contender);
  void keep(const comm::Call& call, std::vector<Contender>& contenders);
  Visited& visits_of(const comm::Call& call, std::string_view algorithm);

  const Job& job_;
  Options options_;  ///< the job's, except checks and warm-up
  CoreWatch& cores_;
  const core::Timer& watch_;
  core::Random order_;
  int signal_ = 0;
  std::vector<Visited> visited_{};
};

}  // namespace lockstep::reduce_all

// Visits: all sizes again and again, each time briefly and with buffers and plans of its own, for comparing results.
// Invariant: what happens within some seconds, or to one buffer, touches one visit of a size and not all of them; one
// during which cores moved does not count. Their course is rank 0's or the seed's, so all ranks take the same.
// Used by run, after the sweep; the result file keeps them.
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

  /// Collective: `job.options.visits` of every call and algorithm, but for what --max-time or a signal cuts off. At
  /// rank 0 all of them, elsewhere none.
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
  Options options_;  ///< the job's, but for checks and warm-up
  CoreWatch& cores_;
  const core::Timer& watch_;
  core::Random order_;
  int signal_ = 0;
  std::vector<Visited> visited_{};
};

}  // namespace lockstep::reduce_all

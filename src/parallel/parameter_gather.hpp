// Gathers the parameters that nodes have updated apart: those that are always there once per step, bucket by bucket,
// while later buckets are updated; those of units whenever a pass needs a unit that the pool does not hold.
// Invariant: a rank writes only what is its share of its node's memory. Values arrive bit by bit. All ranks start the
// same gathers in the same order.
// Used by the synchronizer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "comm/plan.hpp"
#include "comm/transport.hpp"
#include "parallel/node_flags.hpp"
#include "parallel/sharding.hpp"
#include "parallel/unit_turns.hpp"

namespace lockstep::parallel {

/// Makes the all-gather of one share. Null if there is nothing to gather, as if each node updates all of it.
using MakeGather = std::function<std::unique_ptr<comm::Plan>(std::size_t bucket)>;

class ParameterGather {
 public:
  /// Collective over the ranks that `make` connects; it is called for each of `n_buckets`.
  ParameterGather(NodeFlags& flags, std::size_t n_buckets, const MakeGather& make);

  /// Collective, for ascending buckets: this rank has updated its part of `bucket`. Does not wait.
  void start(std::size_t bucket);
  /// Collective: returns when this rank's shares of all buckets are there.
  void finish();

 private:
  NodeFlags& flags_;
  std::vector<std::unique_ptr<comm::Plan>> plans_{};  ///< by bucket
  std::size_t n_finished_ = 0;
};

class UnitGather {
 public:
  /// Collective likewise; `make` is called for each bucket of the pool. `turns` and `places` must outlive it.
  UnitGather(NodeFlags& flags, const UnitTurns& turns, const BucketPlaces& places, const MakeGather& make);

  /// Collective, in the order of a pass: returns when all ranks of the node have gathered their shares of `unit`.
  /// Starts gathering units that the pass needs soon. What the pass was done with before may be overwritten. Calls
  /// `meanwhile` while it waits.
  template <class Meanwhile>
  void need(std::size_t unit, bool is_backward, Meanwhile meanwhile) {
    begin_need(unit, is_backward);
    flags_.await_all(Stage::gathers, numbers_[unit], [&] {
      progress();
      meanwhile();
    });
  }
  /// Local: advances what has been started.
  void progress();
  /// Local, between passes: the parameters have changed.
  void forget() noexcept { held_.forget(); }

 private:
  /// A gather that may begin once all ranks of the node need what comes `after` so many units.
  struct Waiting {
    std::size_t unit = 0;
    std::uint64_t after = 0;
  };

  void begin_need(std::size_t unit, bool is_backward);

  NodeFlags& flags_;
  HeldUnits held_;
  std::vector<std::unique_ptr<comm::Plan>> plans_{};  ///< by unit; null if this rank has no share of it
  std::vector<std::uint64_t> numbers_{};              ///< of each unit's last gather, counting from 1
  std::vector<Waiting> waiting_{};                    ///< in order
  std::vector<std::size_t> started_{};                ///< in order
  std::uint64_t n_needs_ = 0, n_gathers_ = 0, n_finished_ = 0;
};

}  // namespace lockstep::parallel

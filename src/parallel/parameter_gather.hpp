// Gathers the parameters that nodes have updated apart, bucket by bucket, while later buckets are updated.
// Invariant: a rank writes only what is its share of its node's arena. Values arrive bit by bit.
// Used by the synchronizer.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "comm/plan.hpp"
#include "comm/transport.hpp"
#include "parallel/node_flags.hpp"
#include "parallel/sharding.hpp"

namespace lockstep::parallel {

class ParameterGather {
 public:
  /// Collective over `between`, the owners of the same shares on all nodes. `parameters`: the node's arena. `shares`:
  /// of this rank; must outlive it.
  ParameterGather(comm::Transport& between, NodeFlags& flags, std::span<float> parameters,
                  std::span<const Share> shares, bool is_order_fixed);

  /// Collective, for ascending buckets: this rank has updated its part of `bucket`. Does not wait.
  void start(std::size_t bucket);
  /// Collective: returns when this rank's shares of all buckets are there.
  void finish();

 private:
  NodeFlags& flags_;
  std::vector<std::unique_ptr<comm::Plan>> plans_{};  ///< by bucket; null if each node updates all of the share
  std::size_t n_finished_ = 0;
};

}  // namespace lockstep::parallel

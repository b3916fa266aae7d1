// Sums gradients over all ranks, bucket by bucket. On a node it uses shared memory. Between nodes, one rank per node
// sums each owner's slice, with the algorithm of comm::choose(), or by touched rows for embeddings. Each gets the whole
// slice, or its part if nodes divide the update. Sums of pooled gradients go to memory of their own, so that other
// units can take their places.
// Invariant: only the owner touches its slices of the node's gradients once they are ready. All nodes get the same
// bits.
// Used by the synchronizer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/collective.hpp"
#include "comm/plan.hpp"
#include "comm/transport.hpp"
#include "parallel/node_flags.hpp"
#include "parallel/parts_exchange.hpp"
#include "parallel/sharding.hpp"
#include "parallel/sparse_rows.hpp"

namespace lockstep::parallel {

/// The setting of one rank.
struct BucketSumsSetting {
  int n_nodes = 1;
  std::size_t n_buckets = 0;
  std::vector<std::span<float>> gradients{};  ///< those of the node's ranks, in order
  std::vector<Share> shares{};                ///< of this rank in each bucket, in that memory; none if it owns none
  std::vector<bool> are_pooled{};             ///< by bucket
  std::vector<std::span<float>> sums{};       ///< by bucket, if it is pooled: where the part that the rank updates goes
  bool is_tree = false;                       ///< sums by a binary tree over ranks, then nodes, not in rank order
  const SparseRows* rows = nullptr;           ///< which parts of the slices must be summed; a tree sums everything
};

class BucketSums {
 public:
  /// Collective over `between`, the owners of the same slices on all nodes.
  BucketSums(comm::Transport& node, comm::Transport& between, NodeFlags& flags, BucketSumsSetting setting);

  /// Whether calling ready() early can save time.
  [[nodiscard]] bool overlaps() const noexcept { return has_messages_ || has_pool_; }

  /// Local: the gradients of the first `n` buckets of this rank are complete. Sums and sends what it can without
  /// waiting.
  void ready(std::size_t n);

  /// Collective over the node: returns when the first `n` buckets of this step have left the gradients of all ranks.
  /// Only if some are pooled. Calls `meanwhile` while it waits.
  template <class Meanwhile>
  void await_sums(std::size_t n, Meanwhile meanwhile) {
    if (n == 0) return;
    flags_.await_all(Stage::sums, n_steps_ * setting_.n_buckets + n, [&] {
      progress();
      meanwhile();
    });
  }
  /// Local: starts sums that are ready on this node, and advances started ones, because other nodes may wait for our
  /// messages.
  void progress();

  /// Collective: all gradients of this rank are complete and it no longer reads parameters. Returns when that holds for
  /// all ranks of the node and all sums of this rank have begun.
  void begin_rest();

  /// Collective, after begin_rest(): returns when the sums of this rank's slices are complete.
  void finish();

  /// Local: the sums have been read, and a new step begins.
  void end_step() noexcept;

  /// After finish(): the arrays whose sum, in order, is the gradient of what this rank updates of `bucket`. If all
  /// ranks share a node and only order matters, nothing is summed in advance: the optimizer then reads the slices of
  /// all ranks once. Slices with rows are summed in advance, because few of their rows are touched.
  [[nodiscard]] std::span<const std::span<const float>> sources(std::size_t bucket) const { return sources_[bucket]; }

 private:
  [[nodiscard]] std::uint64_t count(std::size_t n) const noexcept { return n_steps_ * (setting_.n_buckets + 1) + n; }
  [[nodiscard]] std::unique_ptr<comm::Plan> plan_between(comm::Transport& between, const Share& share);
  void begin(std::size_t bucket);
  void sum_pooled(std::size_t bucket);
  void publish_sums() noexcept;
  void sum_in_order(const core::Slice& slice);
  void sum_part(const core::Slice& part, std::span<float> to);
  [[nodiscard]] bool sums_here(const core::Slice& slice) const noexcept;
  void sum_in_tree(const core::Slice& slice) const;

  NodeFlags& flags_;
  BucketSumsSetting setting_;
  bool has_messages_;
  bool has_pool_;
  bool is_fused_;            ///< the optimizer sums the node's gradients while it updates
  std::span<float> target_;  ///< the gradients of one rank
  std::vector<std::vector<std::span<const float>>> sources_;
  std::unique_ptr<comm::Transport> later_{};  ///< for the ranks of `between`; null without rows, like exchange_
  std::unique_ptr<PartsExchange> exchange_{};
  std::vector<std::unique_ptr<comm::Plan>> plans_;  ///< null on one node, and for empty slices
  std::vector<const std::byte*> addends_;
  std::vector<core::Slice> touched_;
  std::size_t n_begun_ = 0;
  std::size_t n_finished_ = 0;
  std::uint64_t n_steps_ = 0;
};

}  // namespace lockstep::parallel

// Data parallelism: keeps the parameters of all ranks equal, step by step, from the gradients of each.
// Invariant: one arena of parameters a node, written in steps only, by owners only; one arena of gradients a rank. The
// number of ranks enters no formula: gradients come with the weight of their samples and are only added up.
// Used by the trainer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "comm/transport.hpp"
#include "core/step_numbers.hpp"
#include "core/units.hpp"
#include "optim/optimizer.hpp"
#include "parallel/bucket_plan.hpp"
#include "parallel/bucket_sums.hpp"
#include "parallel/node_flags.hpp"
#include "parallel/node_norms.hpp"
#include "parallel/placement.hpp"
#include "parallel/replica_guard.hpp"
#include "parallel/sharding.hpp"
#include "parallel/shared_array.hpp"
#include "parallel/slots.hpp"
#include "parallel/sparse_rows.hpp"

namespace lockstep::parallel {

/// Rows of a logical tensor, and what is kept of them.
struct Piece {
  std::size_t tensor = 0;   ///< number of its slot
  std::string_view state;   ///< "parameter", or as optim::State has it
  core::Slice rows{};       ///< along the dimension that its slot is cut by
  std::span<float> values;  ///< in the order of the arena, with its padding
};

struct SynchronizerOptions {
  optim::OptimizerSpec optimizer{};
  BucketOptions buckets{};
  /// Gradients are summed in a tree over ranks, the upper part of that of Lanes.
  bool is_deterministic = false;
  /// The replica guard hashes after every so many steps; 0: never. It then reads the parameters twice (8 bytes each),
  /// where an optimizer's pass moves at least 12: with 100, less than 1 % of that pass, and so of any step.
  std::uint64_t guard_interval = 100;
};

class Synchronizer {
 public:
  /// Collective over `world`, which must outlive it. The ranks of a node, in the transport's sense, share memory:
  /// where a machine has several NUMA domains, each may be called a node.
  Synchronizer(comm::Transport& world, std::vector<Slot> slots, const SynchronizerOptions& options);

  /// The node's. To be read by all its ranks from one step() to the next; to be written by rank 0 before
  /// publish_initial().
  [[nodiscard]] std::span<float> parameters() const noexcept { return parameters_.values(); }
  /// This rank's: to be written from one step() to the next, all of it, and zero where it has no samples. After step()
  /// of no defined value, but 0 in slots with rows: there it is enough to write the rows that are touched.
  [[nodiscard]] std::span<float> gradients() const noexcept;

  /// Collective: gives rank 0's parameters to all nodes. To be called before the first step and whenever they were
  /// loaded.
  void publish_initial();

  /// Local, before the gradients of a slot with rows are ready: the rows of this rank that may have a gradient, in any
  /// order. All others are zero, as everywhere in gradients(), and are updated as such.
  void touch(std::size_t slot, std::span<const std::uint64_t> rows) { rows_.touch(slot, rows); }

  /// Local, may be left out: this rank's gradient of `slot` is complete, and so are those before it. Lets messages
  /// travel.
  void ready(std::size_t slot);

  /// Local, before step() and before the last of ready(): this rank's gradients are of no use. No rank updates anything
  /// from this step on, so that parameters and states stay as they were before it, until publish_initial().
  void halt() noexcept { flags_.publish(Stage::halt, n_starts_); }

  /// Collective: sums all gradients, divides them by the scale of the loss and, if `clip_norm` is greater than 0, so
  /// that their norm is at most that; updates the parameters. On return those of this node are written. Returns the
  /// norm before clipping, or 0 without. Halts if the norm is not finite, and from the next step on if the guard finds
  /// parameters that nobody wrote.
  double step(const core::StepNumbers& numbers, double clip_norm = 0);

  /// Whether the last step() has updated nothing.
  [[nodiscard]] bool is_halted() const noexcept { return is_halted_; }
  /// Whether the guard has found a change on this rank since publish_initial().
  [[nodiscard]] bool has_changed() const noexcept { return has_changed_; }
  /// Local: throws core::Error (failed) with tensor, node and rank if so.
  void fail_for_change() const { guard_.fail_for_change(); }
  /// Parameters that this rank has read after at most so many steps are sound: a change that the guard or the control
  /// word finds from now on, or has just found, came later. Of all ranks the least counts.
  [[nodiscard]] std::uint64_t n_sound_steps() const noexcept;

  /// Hash of the node's parameters when the guard last looked, from one rank of each of several nodes, for the
  /// control word.
  [[nodiscard]] std::optional<std::uint32_t> replica_hash() const noexcept;
  /// Collective, once the control word says that replicas differ: throws core::Error (failed) with tensor, node and
  /// rank.
  [[noreturn]] void fail_for_replicas() { guard_.fail_for_replicas(); }

  [[nodiscard]] std::span<const Slot> slots() const noexcept { return slots_; }
  /// Local: calls `visitor` for all that this rank owns, which are parameters and the states of its optimizers. The
  /// ranks of a node own each element once; every node has all of them. To be read from one step() to the next;
  /// to be written before publish_initial().
  void visit(const std::function<void(const Piece&)>& visitor);
  /// Whether what visit() gives here is of the first node, so that these ranks have all of it once.
  [[nodiscard]] bool is_on_first_node() const noexcept { return node_index_ == 0; }
  /// Local, before publish_initial(): what visit() has written is of a run after so many steps.
  void set_n_steps(std::uint64_t n_steps) noexcept;

  /// Of the slots, over the owners of a node.
  [[nodiscard]] const Sharding& sharding() const noexcept { return sharding_; }
  /// Called whenever this rank begins or ends to wait for others.
  void set_on_wait(runtime::OnWait on_wait) { flags_.set_on_wait(std::move(on_wait)); }
  /// Spent waiting for other ranks and nodes since construction.
  [[nodiscard]] core::Seconds waited() const noexcept { return {flags_.waited().value + sums_.waited().value}; }

 private:
  /// A slice of a bucket that this rank updates on its node.
  struct Owned {
    core::Slice slice;
    optim::Optimizer optimizer;
    std::size_t first_block = 0;
    std::span<double> norms{};  ///< the optimizer's, of the step under way
  };

  [[nodiscard]] std::vector<core::Slice> owned_slices() const;
  [[nodiscard]] BucketSumsSetting sums_setting(bool is_tree) const;
  [[nodiscard]] std::vector<SlotPart> all_blocks() const;
  [[nodiscard]] std::span<float> gradients_of(int local_rank) const noexcept;
  void copy_between_nodes();
  [[nodiscard]] double gradient_norm(float scale);
  void update(double lr, float scale);
  [[nodiscard]] std::span<const core::Slice> touched_in(const core::Slice& slice);
  [[nodiscard]] bool finish_sums();
  void zero_rows();
  void end_writing(bool is_guarded);
  void await_node();

  std::vector<Slot> slots_;
  std::uint64_t guard_interval_;
  bool is_deterministic_;
  bool needs_norms_;  ///< of whole tensors
  Placement placement_;
  int node_index_;
  std::vector<Bucket> buckets_;
  Sharding sharding_;
  std::unique_ptr<comm::Transport> node_;     ///< ranks that share the arena of parameters
  std::unique_ptr<comm::Transport> between_;  ///< one rank of each node
  NodeFlags flags_;
  SharedArray<float> parameters_;
  std::unique_ptr<comm::SharedSegment> gradients_;
  SharedArray<std::uint32_t> hashes_;  ///< one of each rank of the node
  NodeNorms norms_;
  SparseRows rows_;
  BucketSums sums_;
  ReplicaGuard guard_;
  std::vector<Owned> owned_;
  std::vector<core::Slice> touched_{};
  std::size_t n_ready_ = 0;  ///< buckets
  std::uint64_t n_steps_ = 0;
  std::uint64_t n_meetings_ = 0;  ///< of await_node()
  std::uint64_t n_starts_ = 0;    ///< calls of publish_initial()
  bool is_halted_ = false;
  bool has_changed_ = false;
  std::uint64_t started_at_ = 0;             ///< steps made then
  std::uint64_t record_at_ = 0;              ///< steps made when the guard recorded last
  std::uint64_t record_before_at_ = 0;       ///< and when it did so before
  std::unique_ptr<comm::Plan> halt_plan_{};  ///< null on one node
  std::uint64_t halts_here_ = 0, halts_anywhere_ = 0;
  std::optional<std::uint32_t> replica_hash_;
};

}  // namespace lockstep::parallel

// The synchronizer of a host: the ranks of a node share memory for parameters, and each owns slices of it. Each node
// updates all of them, or a part that others gather after the update or when a pass needs it.
// Invariant: only owners write parameters that are always there, and only in steps. Gradients are those of one rank.
// Places never change.
// Used by make_synchronizer() and tests; others use synchronizer.hpp.
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
#include "optim/optimizer.hpp"
#include "parallel/bucket_sums.hpp"
#include "parallel/host_places.hpp"
#include "parallel/node_flags.hpp"
#include "parallel/node_norms.hpp"
#include "parallel/parameter_gather.hpp"
#include "parallel/replica_guard.hpp"
#include "parallel/sharding.hpp"
#include "parallel/shared_array.hpp"
#include "parallel/slots.hpp"
#include "parallel/sparse_rows.hpp"
#include "parallel/synchronizer.hpp"
#include "parallel/unit_turns.hpp"

namespace lockstep::parallel {

class HostSynchronizer final : public Synchronizer, public DirectSteps {
 public:
  /// Collective over `world`, which must outlive it. The ranks of a node of the transport share memory; on a machine
  /// with several NUMA domains, each domain may count as a node.
  HostSynchronizer(comm::Transport& world, const std::vector<Slot>& slots, const SynchronizerOptions& options,
                   Strategy strategy = Strategy::ddp);

  /// The node's memory, which all its ranks read, and this rank's: arenas, unless some of their buckets are in a pool.
  [[nodiscard]] std::span<float> parameters() const noexcept { return parameters_.values(); }
  [[nodiscard]] std::span<float> gradients() const noexcept { return gradients_of(node_->rank()); }
  [[nodiscard]] Arenas arenas() const noexcept override;
  [[nodiscard]] SlotPlace place(std::size_t slot) const override;
  void acquire(std::size_t unit, UnitUse use);
  void acquire(std::size_t unit, UnitUse use, runtime::Stream& stream) override;
  [[nodiscard]] bool has_all_parameters() const noexcept override { return places_.parameters.n_pool_elements() == 0; }

  [[nodiscard]] DirectSteps* direct() noexcept override { return this; }
  void touch(std::size_t slot, std::span<const std::uint64_t> rows) override { rows_.touch(slot, rows); }
  void halt() noexcept override { flags_.publish(Stage::halt, n_starts_); }

  void start(const StartAt& at) override;
  void ready(std::size_t slot);
  void ready(std::size_t slot, runtime::Stream& stream) override;

  /// As the other step(), but returns when it is done: the norm before clipping, or 0 without clipping.
  double step(const core::StepNumbers& numbers, double clip_norm = 0);
  bool step(const core::StepNumbers& numbers, double clip_norm, runtime::Stream& stream) override;
  [[nodiscard]] double norm(StepBack /*back*/) noexcept override { return norm_; }

  [[nodiscard]] const ReplicaGuard& guard() const noexcept override { return guard_; }
  bool flip_bit(std::size_t slot) override;

  [[nodiscard]] const Sharding& sharding() const noexcept override { return sharding_; }
  [[nodiscard]] std::span<const float> read(std::size_t slot) override;
  /// A rank keeps what it updates. What nodes update alike, the first of them owns.
  void visit(Access access, const std::function<void(const StoredPiece&)>& visitor) override;
  [[nodiscard]] std::optional<optim::LossScale> scale_to_save() override;

  [[nodiscard]] KeptBytes kept() const noexcept override;

  void set_on_wait(runtime::OnWait on_wait) override { flags_.set_on_wait(std::move(on_wait)); }
  [[nodiscard]] core::Seconds waited() const noexcept override { return flags_.waited(); }

 private:
  /// This rank's update of one bucket.
  struct Owned {
    core::Slice slice;    ///< Share::updated
    bool is_own = false;  ///< among all ranks
    optim::Optimizer optimizer;
    std::size_t first_block = 0;
    std::span<double> norms{};  ///< the optimizer's, in the current step
  };

  [[nodiscard]] std::size_t owner() const noexcept { return static_cast<std::size_t>(node_->rank()); }
  [[nodiscard]] bool is_gathered(std::size_t bucket) const noexcept { return places_.parameters.is_pooled(bucket); }
  [[nodiscard]] std::vector<Piece> written_pieces(bool are_gathered) const;
  [[nodiscard]] std::span<float> parameters_at(std::size_t bucket, const core::Slice& slice) const noexcept;
  [[nodiscard]] std::span<float> parameters_at(const Piece& piece) const noexcept {
    return parameters_at(sharding_.bucket_of(piece.slot), piece.slice);
  }
  [[nodiscard]] std::vector<Slot> gradient_slots() const;
  [[nodiscard]] std::unique_ptr<comm::Plan> plan_gather(std::size_t bucket, bool is_gathered_by_passes);
  void free_gradients(std::size_t bucket);
  [[nodiscard]] BucketSumsSetting sums_setting(bool is_tree) const;
  [[nodiscard]] std::vector<Piece> all_blocks() const;
  [[nodiscard]] std::span<float> gradients_of(int local_rank) const noexcept;
  [[nodiscard]] HashPiece hash() const;
  void copy_between_nodes();
  [[nodiscard]] double gradient_norm(float scale);
  void update(double lr, float scale);
  [[nodiscard]] std::span<const core::Slice> touched_in(std::size_t bucket);
  [[nodiscard]] bool finish_sums();
  void zero_rows();
  void end_writing(bool is_guarded);
  void await_node();

  bool is_deterministic_;
  bool needs_norms_;  ///< of whole tensors
  comm::Transport& world_;
  Placement placement_;
  int node_index_;
  Sharding sharding_;
  UnitTurns turns_;
  HostPlaces places_;
  std::unique_ptr<comm::Transport> node_;     ///< ranks that share the arena of parameters
  std::unique_ptr<comm::Transport> between_;  ///< one rank of each node
  std::vector<Share> shares_;                 ///< of this rank, by bucket
  OwnParts own_parameters_, own_gradients_;
  NodeFlags flags_;
  SharedArray<float> parameters_;
  std::unique_ptr<comm::SharedSegment> gradients_;
  SharedArray<std::uint32_t> hashes_;  ///< one for each rank of the node
  NodeNorms norms_;
  SparseRows rows_;
  BucketSums sums_;
  ParameterGather gather_;
  UnitGather unit_gather_;
  ReplicaGuard guard_;
  std::vector<Owned> owned_;
  std::vector<core::Slice> touched_{};
  std::vector<float> read_{};  ///< by read()
  std::uint64_t n_steps_ = 0;
  std::uint64_t n_meetings_ = 0;  ///< calls of await_node()
  std::uint64_t n_starts_ = 0;    ///< calls of start()
  double norm_ = 0;               ///< of the last step
  bool is_halted_ = false;        ///< the last step
  StartAt started_at_{};
  std::unique_ptr<comm::Plan> halt_plan_{};  ///< null on one node
  std::uint64_t halts_here_ = 0, halts_anywhere_ = 0;
};

}  // namespace lockstep::parallel

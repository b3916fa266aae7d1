// The synchronizer of devices: each rank has in its device's memory what passes read, all gradients, and the states of
// what it updates: all parameters, or if the strategy divides states its parts of them.
// Invariant: step() only enqueues, if the group does; all ranks decide alike, and replicas make the same update from
// the same sums. The host has copies only of what is read or visited, until the next step.
// Used by make_synchronizer() and tests; others use synchronizer.hpp.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "comm/plan.hpp"
#include "optim/cuda/device_optimizer.hpp"
#include "parallel/device_division.hpp"
#include "parallel/device_guard.hpp"
#include "parallel/device_memory.hpp"
#include "parallel/synchronizer.hpp"
#include "runtime/staging.hpp"

namespace lockstep::parallel {

class DeviceSynchronizer final : public Synchronizer, public EnqueuedSteps {
 public:
  /// Collective over `world`. `world` and `devices` must outlive it; `devices` is null for one rank.
  DeviceSynchronizer(comm::Transport& world, comm::DeviceGroup* devices, const std::vector<Slot>& slots,
                     const SynchronizerOptions& options, Strategy strategy = Strategy::ddp);

  /// With 16-bit weights and divided states, `parameters` has only slots without a unit.
  [[nodiscard]] Arenas arenas() const noexcept override {
    return {memory_.parameters_of_passes(), memory_.gradients(), memory_.weights()};
  }

  [[nodiscard]] EnqueuedSteps* enqueued() noexcept override { return this; }
  void keep_statistics(runtime::DeviceSpan<float> statistics, runtime::DeviceSpan<float> kept) override;
  [[nodiscard]] runtime::DeviceSpan<const float> loss_scale() const noexcept override;
  [[nodiscard]] bool is_registered() const noexcept override { return registered_ != nullptr; }
  [[nodiscard]] bool can_be_recorded() const noexcept override { return only_enqueues_; }
  void send(const core::StepNumbers& numbers, runtime::Stream& stream) override;
  void enqueue_sent(double clip_norm, runtime::Stream& stream) override;
  void end_step(runtime::Stream& stream) override;

  void start(const StartAt& at) override;
  void ready(std::size_t slot, runtime::Stream& stream) override;
  bool step(const core::StepNumbers& numbers, double clip_norm, runtime::Stream& stream) override;
  [[nodiscard]] double norm(StepBack back) override;

  [[nodiscard]] const ReplicaGuard& guard() const noexcept override { return guard_.found(); }
  bool flip_bit(std::size_t slot) override;

  [[nodiscard]] const Sharding& sharding() const noexcept override { return division_.sharding(); }
  [[nodiscard]] std::span<const float> read(std::size_t slot) override;
  /// Each rank keeps what it updates, and owns a part of it.
  void visit(Access access, const std::function<void(const StoredPiece&)>& visitor) override;
  [[nodiscard]] std::optional<optim::LossScale> scale_to_save() override;

  void set_on_wait(runtime::OnWait on_wait) override { on_wait_ = std::move(on_wait); }
  [[nodiscard]] core::Seconds waited() const noexcept override { return {waited_}; }

 private:
  [[nodiscard]] std::size_t owner() const noexcept { return static_cast<std::size_t>(world_.rank()); }
  void wait_for_steps();
  /// A slice of the parameters, or of state number i - 1.
  [[nodiscard]] runtime::DeviceSpan<float> array(std::size_t i, const core::Slice& slice) const;
  void fetch(std::size_t i, const core::Slice& slice, std::span<float> to);
  void put(std::size_t i, const core::Slice& slice, std::span<const float> from);
  [[nodiscard]] std::span<float> fetch_parameters(const core::Slice& slice);
  void make_plans();
  void cast_weights(const core::Slice& slice);
  void publish_parameters();
  void gather_parameters();
  void sum_rest(runtime::Stream& stream);
  void update_parts(double clip_norm, runtime::Stream& stream);
  void record_replica();
  template <class F>
  void waiting(std::size_t bucket, const F& f);

  comm::Transport& world_;
  comm::DeviceGroup* devices_;
  bool only_enqueues_;
  bool scales_loss_;
  core::DType weights_type_;
  DeviceDivision division_;
  DeviceMemory memory_;
  runtime::Buffer numbers_;
  optim::cuda::DeviceOptimizer optimizer_;
  std::vector<optim::cuda::DeviceOptimizer::Operands> runs_{};  ///< one for each of memory_.updated()
  struct Progress {
    runtime::Buffer here{};
    runtime::Event copied{};
  };
  std::array<Progress, 2> progress_{};                        ///< of the optimizer, after each step, in turn
  std::unique_ptr<comm::Registered> registered_{};            ///< memory_.exchanged()
  std::vector<std::vector<std::size_t>> cuts_{};              ///< of divided buckets, for their plans
  std::vector<std::unique_ptr<comm::DevicePlan>> plans_{};    ///< sum the gradients of buckets; none for one rank
  std::vector<std::unique_ptr<comm::DevicePlan>> gathers_{};  ///< of divided buckets: what passes read
  std::unique_ptr<comm::DevicePlan> squares_plan_{}, norms_plan_{};
  runtime::Staging staging_{};
  /// What the last visit() gave out, for start() to send: slices one after another, of each array.
  struct Visited {
    std::vector<core::Slice> slices{};
    std::vector<std::vector<float>> arrays{};

    /// Calls f(number of the array, slice, its values here).
    template <class F>
    void each(const F& f);
  };
  Visited visited_{};
  std::vector<float> parameters_here_{};  ///< of fetch_parameters()
  std::vector<float> read_piece_{};       ///< of read(), if parameters are divided: one number, then values
  std::unique_ptr<comm::Plan> read_plan_{};
  DeviceGuard guard_;
  runtime::DeviceSpan<float> statistics_{}, kept_statistics_{};
  runtime::Stream* stream_ = nullptr;        ///< of the last step
  std::size_t n_ready_ = 0;                  ///< buckets
  std::uint64_t n_steps_ = 0;                ///< made or enqueued
  std::optional<optim::LossScale> scale_{};  ///< as it was when start() was called
  runtime::OnWait on_wait_{};
  double waited_ = 0;
};

}  // namespace lockstep::parallel

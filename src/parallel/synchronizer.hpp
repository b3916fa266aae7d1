// Data parallelism: keeps the parameters of all ranks equal, step by step, from the gradients of each rank.
// Invariant: parameters are written in steps only. The number of ranks is in no formula: gradients already have the
// weight of their samples and are only added up.
// Used by the trainer; implemented on the host by shared memory, and on devices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "comm/device_plan.hpp"
#include "comm/transport.hpp"
#include "core/dtype.hpp"
#include "core/step_numbers.hpp"
#include "core/units.hpp"
#include "optim/loss_scale.hpp"
#include "optim/optimizer_spec.hpp"
#include "parallel/replica_guard.hpp"
#include "parallel/sharding.hpp"
#include "parallel/slots.hpp"
#include "parallel/strategy.hpp"
#include "runtime/device.hpp"
#include "runtime/watch/wait.hpp"

namespace lockstep::parallel {

/// A piece, and one kind of values stored for it.
struct StoredPiece : Piece {
  std::string_view state{};   ///< "parameter", or a name of optim::State
  std::span<float> values{};  ///< in the order of the arena, with its padding
};

struct SynchronizerOptions {
  optim::OptimizerSpec optimizer{};
  BucketOptions buckets{};
  /// Sums gradients in a tree over ranks, the upper part of that of Lanes.
  bool is_deterministic = false;
  /// The replica guard hashes after this many steps; 0: never. It then reads the parameters twice (8 bytes each), while
  /// an optimizer's pass moves at least 12. So 100 costs less than 1 % of that pass.
  std::uint64_t guard_interval = 100;
  /// Gradients are multiplied by EnqueuedSteps::loss_scale(), which adapts to them: a step in which they are not finite
  /// is skipped.
  bool scales_loss = false;
  /// The type of Arenas::weights; float32: there are none. Others only on devices.
  core::DType weights = core::DType::float32;
  /// By unit of the slots: the nodes of the network from the first that reads it to the last.
  std::vector<core::Slice> unit_reads{};
  /// How many units before its own turn a unit is gathered. Each takes memory.
  std::size_t prefetch = 1;
  /// Whether each step makes one backward pass, whose gradients are summed at once.
  bool is_one_pass = false;
};

/// Why a pass needs a unit.
enum class UnitUse : std::uint8_t {
  forward,
  backward,  ///< it writes gradients, and reports them by ready()
  discarded  ///< it writes gradients that nobody sums
};

/// What a rank visits: what it alone owns, so that all ranks together visit each element once, or all that it keeps.
/// Saving and initializing need the former, loading the latter. With own_parameters the visitor only reads, and only
/// during its call, so a device sends one piece at a time.
enum class Access : std::uint8_t { own, own_parameters, kept };

/// One of the last two steps that were enqueued.
enum class StepBack : std::uint8_t { last, before_last };

/// Memory of a rank, in bytes.
struct KeptBytes {
  std::uint64_t shared = 0;     ///< by all ranks of a node of hosts: parameters
  std::uint64_t pool = 0;       ///< of these, places in which units take turns
  std::uint64_t gradients = 0;  ///< that other ranks read
  std::uint64_t own = 0;        ///< its parts of parameters and gradients whose units are in a pool
  std::uint64_t states = 0;     ///< of the optimizer
};

/// Where a run starts or resumes.
struct StartAt {
  std::uint64_t n_steps = 0;                ///< made before
  std::optional<optim::LossScale> scale{};  ///< none if the loss was never scaled
};

/// What passes through the network read and write.
struct Arenas {
  runtime::DeviceSpan<const float> parameters{};
  /// This rank's gradients, which must be written completely between step() calls, with zeros if it has no samples.
  /// Undefined after step(), except 0 in slots with rows: there only touched rows must be written.
  runtime::DeviceSpan<float> gradients{};
  /// The parameters rounded to SynchronizerOptions::weights. start(), step() and flip_bit() write both, so that they
  /// always agree.
  runtime::DeviceSpan<const std::byte> weights{};
};

/// The same for one slot: its elements, with padding.
struct SlotPlace {
  runtime::DeviceSpan<const float> parameters{};
  runtime::DeviceSpan<float> gradients{};
  runtime::DeviceSpan<const std::byte> weights{};
};

/// Steps that are done when step() returns.
class DirectSteps {
 public:
  /// Local, before the gradients of a slot with rows are ready: reports the rows of this rank that may have a gradient,
  /// in any order. All other rows have gradient 0 on every rank.
  virtual void touch(std::size_t slot, std::span<const std::uint64_t> rows) = 0;
  /// Local, before step() and before the last of ready(): this rank's gradients are invalid. From this step on no rank
  /// updates anything, so parameters and states stay unchanged until start().
  virtual void halt() = 0;

 protected:
  ~DirectSteps() = default;
};

/// Steps that are only enqueued. Slots with rows are summed like all others. Each device sees invalid gradients in the
/// norm of their sum.
class EnqueuedSteps {
 public:
  /// Local, before the first step: running statistics of a network in a device's memory, and as much memory for a copy.
  /// If a step updates nothing, they are restored.
  virtual void keep_statistics(runtime::DeviceSpan<float> statistics, runtime::DeviceSpan<float> kept) = 0;
  /// One number in a device's memory; none unless scales_loss.
  [[nodiscard]] virtual runtime::DeviceSpan<const float> loss_scale() const noexcept = 0;
  /// Whether the gradients' memory is registered with the library that sums them.
  [[nodiscard]] virtual bool is_registered() const noexcept = 0;

  /// Whether the following three calls can replace step(). send() sends what changes from step to step. enqueue_sent()
  /// may be recorded, together with the calls of ready() before it.
  [[nodiscard]] virtual bool can_be_recorded() const noexcept = 0;
  virtual void send(const core::StepNumbers& numbers, runtime::Stream& stream) = 0;
  virtual void enqueue_sent(double clip_norm, runtime::Stream& stream) = 0;
  virtual void end_step(runtime::Stream& stream) = 0;

 protected:
  ~EnqueuedSteps() = default;
};

class Synchronizer {
 public:
  virtual ~Synchronizer() = default;

  /// Empty spans for what is not kept whole.
  [[nodiscard]] virtual Arenas arenas() const noexcept = 0;
  /// Where passes find one of sharding().slots(): in arenas(), or in a pool in which units take
  /// turns. Never changes.
  [[nodiscard]] virtual SlotPlace place(std::size_t slot) const;
  /// Collective, when a pass begins to need `unit`, in the order of SynchronizerOptions::unit_reads: the parameters of
  /// its slots are at their places for what `stream` is given until the pass needs a unit whose slots lie there too.
  /// Passes of a backward direction may write the gradients, whose padding is 0.
  virtual void acquire(std::size_t /*unit*/, UnitUse /*use*/, runtime::Stream& /*stream*/) {}
  /// Whether passes find all parameters without acquire().
  [[nodiscard]] virtual bool has_all_parameters() const noexcept { return true; }

  /// What can be asked of one kind of steps only; null for the other kind.
  [[nodiscard]] virtual DirectSteps* direct() noexcept { return nullptr; }
  [[nodiscard]] virtual EnqueuedSteps* enqueued() noexcept { return nullptr; }

  /// Collective: gives the parameters that ranks own to all that keep them. Call it before the first step and after
  /// every load. The values that the last visit() gave out belong to `at`.
  virtual void start(const StartAt& at) = 0;

  /// Local, optional, for ascending slots: this rank's gradients of `slot` and all earlier slots are complete when
  /// `stream` gets here. Messages may then travel. If parts of the devices' group communicate meanwhile, all ranks must
  /// make this call at the same place among their calls (DeviceGroup::split()).
  virtual void ready(std::size_t slot, runtime::Stream& stream) = 0;

  /// Collective: sums all gradients, divides them by the scale of the loss and, if `clip_norm` is greater than 0,
  /// limits their norm to it; updates the parameters when `stream` gets here. Halts if the norm is not finite, and from
  /// the next step on if the guard finds parameters that no step wrote. Returns false if this step is known to
  /// update nothing.
  virtual bool step(const core::StepNumbers& numbers, double clip_norm, runtime::Stream& stream) = 0;

  /// Returns the norm of the gradient of the last step, or of the one before, before clipping; 0 if it was not
  /// measured. Waits for that step, so it does not stall if called when the next step begins, or on a device is
  /// enqueued. The host has only the last.
  [[nodiscard]] virtual double norm(StepBack back) = 0;

  /// Answers whether the parameters are those that steps wrote.
  [[nodiscard]] virtual const ReplicaGuard& guard() const noexcept = 0;

  /// Local, between two steps, for a drill: flips a bit in the part of `slot` that only this rank writes, unseen by the
  /// guard; returns false if there is no such part. On devices that do not divide the slot each rank writes all of it.
  virtual bool flip_bit(std::size_t slot) = 0;

  /// Slots, and their division among owners: the ranks of a node, or all ranks of devices.
  [[nodiscard]] virtual const Sharding& sharding() const noexcept = 0;
  /// Collective, between step() calls: the parameters of one slot in rank 0's host memory, valid until the next call.
  /// Returns nothing on other ranks. If it throws on a rank, as without memory, the others do not wait for that rank.
  [[nodiscard]] virtual std::span<const float> read(std::size_t slot) = 0;
  /// Local: calls `visitor` for parameters and states of optimizers, with values that are valid until the next call,
  /// start() or step(). They may be read between step() calls, and written before start(): with Access::own only the
  /// parameters.
  virtual void visit(Access access, const std::function<void(const StoredPiece&)>& visitor) = 0;
  /// Local: returns the state of the loss scale from which a run with these parameters resumes, if its loss is or was
  /// scaled. Waits for the last step.
  [[nodiscard]] virtual std::optional<optim::LossScale> scale_to_save() = 0;

  /// Memory for parameters, gradients and states, as allocated; nothing is known of devices.
  [[nodiscard]] virtual KeptBytes kept() const noexcept { return {}; }

  /// Sets a function that is called whenever this rank begins or ends waiting for others.
  virtual void set_on_wait(runtime::OnWait on_wait) = 0;
  /// Time spent waiting for other ranks and nodes since construction.
  [[nodiscard]] virtual core::Seconds waited() const noexcept = 0;
};

/// Collective over `world`, which must outlive it. If the host is the device, ranks use shared memory and messages.
/// Otherwise each rank has what passes read in its device's memory, and `devices` sums; it may be null for one rank.
/// Throws core::Error (usage) if there is no synchronizer for `strategy`.
[[nodiscard]] std::unique_ptr<Synchronizer> make_synchronizer(Strategy strategy, comm::Transport& world,
                                                              comm::DeviceGroup* devices,
                                                              const std::vector<Slot>& slots,
                                                              const SynchronizerOptions& options);

}  // namespace lockstep::parallel

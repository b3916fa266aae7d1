// Data parallelism: keeps the parameters of all ranks equal, step by step, from the gradients of each.
// Invariant: written in steps only. The number of ranks enters no formula: gradients come with the weight of their
// samples and are only added up.
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
#include "core/step_numbers.hpp"
#include "core/units.hpp"
#include "optim/loss_scale.hpp"
#include "optim/optimizer_spec.hpp"
#include "parallel/bucket_plan.hpp"
#include "parallel/sharding.hpp"
#include "parallel/slots.hpp"
#include "runtime/device.hpp"
#include "runtime/watch/wait.hpp"

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
  /// Gradients come multiplied by loss_scale(), which follows them: a step in which they are not finite is skipped.
  /// Devices only.
  bool scales_loss = false;
};

/// Of two steps that are enqueued.
enum class StepBack : std::uint8_t { last, before_last };

class Synchronizer {
 public:
  virtual ~Synchronizer() = default;

  /// In the host's memory: to be read from one step() to the next; to be written by rank 0 before publish_initial().
  [[nodiscard]] virtual std::span<float> parameters() = 0;
  /// What passes through the network read.
  [[nodiscard]] virtual runtime::DeviceSpan<const float> device_parameters() const noexcept = 0;
  /// This rank's: to be written from one step() to the next, all of it, and zero where it has no samples. After step()
  /// of no defined value, but 0 in slots with rows: there it is enough to write the rows that are touched.
  [[nodiscard]] virtual runtime::DeviceSpan<float> device_gradients() const noexcept = 0;

  /// Local, before the first step: running statistics of a network, in a device's memory, and as many numbers to keep
  /// them in. Of a step that updates nothing they become as they were before it. For devices.
  virtual void keep_statistics(runtime::DeviceSpan<float> statistics, runtime::DeviceSpan<float> kept) = 0;

  /// One number in a device's memory; none unless it scales_loss.
  [[nodiscard]] virtual runtime::DeviceSpan<const float> loss_scale() const noexcept { return {}; }

  /// Collective: gives rank 0's parameters to all nodes. To be called before the first step and whenever they were
  /// loaded.
  virtual void publish_initial() = 0;

  /// Local, before the gradients of a slot with rows are ready: the rows of this rank that may have a gradient, in any
  /// order. All others are zero, as everywhere in the gradients, and are updated as such.
  virtual void touch(std::size_t slot, std::span<const std::uint64_t> rows) = 0;

  /// Local, may be left out: this rank's gradient of `slot` is complete once `stream` gets here, and so are those
  /// before it. Lets messages travel: where parts of the devices' group communicate meanwhile, at the same place among
  /// their calls on all ranks (DeviceGroup::split()).
  virtual void ready(std::size_t slot, runtime::Stream& stream) = 0;

  /// Local, before step() and before the last of ready(): this rank's gradients are of no use. No rank updates anything
  /// from this step on, so that parameters and states stay as they were before it, until publish_initial().
  virtual void halt() = 0;

  /// Collective: sums all gradients, divides them by the scale of the loss and, if `clip_norm` is greater than 0, so
  /// that their norm is at most that; updates the parameters, when `stream` gets here. Halts if the norm is not finite,
  /// and from the next step on if the guard finds parameters that nobody wrote.
  virtual void step(const core::StepNumbers& numbers, double clip_norm, runtime::Stream& stream) = 0;

  /// Whether, on devices, step() may be had in three parts: what changes from step to step, which is sent; what else
  /// there is to do, of which a recording may be made together with the calls of ready() before it; and the end.
  [[nodiscard]] virtual bool can_be_recorded() const noexcept { return false; }
  virtual void send(const core::StepNumbers& /*numbers*/, runtime::Stream& /*stream*/) {}
  virtual void enqueue_sent(double /*clip_norm*/, runtime::Stream& /*stream*/) {}
  virtual void end_step(runtime::Stream& /*stream*/) {}

  /// Of the gradient of the last step, or of the one before, before clipping; or 0, where nobody measured it. Waits for
  /// that step: asked when the next one begins, or on a device is enqueued, nothing stands still for it. On the host
  /// only of the last.
  [[nodiscard]] virtual double norm(StepBack back) = 0;

  /// Whether the last step() is known to have updated nothing.
  [[nodiscard]] virtual bool is_halted() const noexcept = 0;
  /// Whether the guard has found a change on this rank since publish_initial().
  [[nodiscard]] virtual bool has_changed() const noexcept = 0;
  /// Local: throws core::Error (failed) with tensor, node and rank if so.
  virtual void fail_for_change() const = 0;
  /// Parameters that this rank has read after at most so many steps are sound: a change that the guard or the control
  /// word finds from now on, or has just found, came later. Of all ranks the least counts.
  [[nodiscard]] virtual std::uint64_t n_sound_steps() const noexcept = 0;

  /// Local, between two steps, for a drill: flips a bit of what this rank alone writes of `slot`, unseen by the guard;
  /// false if that is nothing. On a device each rank has all of it.
  virtual bool flip_bit(std::size_t slot) = 0;

  /// Hash of the parameters when the guard last looked, from one rank of each of several replicas, for the control
  /// word.
  [[nodiscard]] virtual std::optional<std::uint32_t> replica_hash() const noexcept = 0;
  /// Collective, once the control word says that replicas differ: throws core::Error (failed) with tensor, node and
  /// rank.
  [[noreturn]] virtual void fail_for_replicas() = 0;

  /// Whether the library that sums the gradients knows their memory.
  [[nodiscard]] virtual bool is_registered() const noexcept { return false; }

  [[nodiscard]] virtual std::span<const Slot> slots() const noexcept = 0;
  /// Local: calls `visitor` for all that this rank has to save, which are parameters and the states of its optimizers,
  /// or has to load. Of the ranks for which saves() each element is of one; of all ranks together every one that is to
  /// be loaded. To be read from one step() to the next; to be written before publish_initial().
  virtual void visit(const std::function<void(const Piece&)>& visitor) = 0;
  /// Whether what visit() gives here is to be saved, so that these ranks have all of it once.
  [[nodiscard]] virtual bool saves() const noexcept = 0;
  /// Local, before publish_initial(): what visit() has written is of a run after so many steps, and its scaled loss was
  /// there; none if it never was scaled.
  virtual void set_n_steps(std::uint64_t n_steps, const std::optional<optim::LossScale>& scale) = 0;
  /// Local: what a run with these parameters goes on from, if its loss is scaled or was. Waits for the last step.
  [[nodiscard]] virtual std::optional<optim::LossScale> scale_to_save() = 0;

  /// Of the slots, over the owners of a node.
  [[nodiscard]] virtual const Sharding& sharding() const noexcept = 0;
  /// Called whenever this rank begins or ends to wait for others.
  virtual void set_on_wait(runtime::OnWait on_wait) = 0;
  /// Spent waiting for other ranks and nodes since construction.
  [[nodiscard]] virtual core::Seconds waited() const noexcept = 0;
};

/// Collective over `world`, which must outlive it: by shared memory and messages where the host is the device; else
/// each rank has all in its device's memory, and `devices`, which may be null for one rank, sums.
[[nodiscard]] std::unique_ptr<Synchronizer> make_synchronizer(comm::Transport& world, comm::DeviceGroup* devices,
                                                              std::vector<Slot> slots,
                                                              const SynchronizerOptions& options);

}  // namespace lockstep::parallel

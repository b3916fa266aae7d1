// One call by one algorithm, in memory of the host or of a device, as the meter runs it.
// Invariant: all members are collective if the algorithm is; run() enqueues, and waits once.
// Used by the measuring loop; made by the sweep and the visits.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "comm/registry.hpp"
#include "reduce_all/buffers.hpp"

namespace lockstep::reduce_all {

class Runner {
 public:
  virtual ~Runner() = default;
  /// Local: sets the buffers of the following runs.
  virtual void bind(const CallBuffers& buffers) = 0;
  /// Called before the barrier that opens a run; for untimed preparation.
  virtual void prepare() {}
  /// Prepares run() of this many calls, before it is timed.
  virtual void make_ready(int /*n*/) {}
  /// Makes this many calls back to back; returns when they are complete.
  virtual void run(int n) = 0;
  /// The time of one call by the clock of the device; nothing without such a clock.
  [[nodiscard]] virtual std::optional<core::Seconds> time_on_device() { return std::nullopt; }
};

/// `is_prepared`: start() prepares, and wait() is timed.
[[nodiscard]] std::unique_ptr<Runner> make_runner(std::unique_ptr<comm::Plan> plan, bool is_prepared = false);

/// Copies input to output within the device's memory.
[[nodiscard]] std::unique_ptr<Runner> make_device_copy();

/// Collective: exchanges these buffers, of equal size, with other ranks by DeviceGroup::make_exchange(), which may not
/// be null; bind() does nothing.
[[nodiscard]] std::unique_ptr<Runner> make_exchange(comm::DeviceGroup& group, const CallBuffers& buffers,
                                                    int n_neighbours);

/// The groups of the devices' algorithms, each made when it is first requested.
class Groups {
 public:
  /// `uses_graph`: as in Options.
  Groups(comm::Transport& transport, comm::Devices devices, bool uses_graph = false)
      : transport_{transport}, devices_{devices}, uses_graph_{uses_graph} {}

  [[nodiscard]] comm::Devices devices() const noexcept { return devices_; }
  [[nodiscard]] bool is_on_host() const noexcept { return devices_ == comm::Devices::none; }
  /// The group of an algorithm for devices.
  [[nodiscard]] comm::DeviceGroup& of(const comm::Algorithm& algorithm);
  /// Collective: a runner on buffers of `pool`. Throws core::Error (usage) if there is an obstacle().
  [[nodiscard]] std::unique_ptr<Runner> make_runner(const comm::Algorithm& algorithm, const comm::Call& call,
                                                    BufferPool& pool);

 private:
  comm::Transport& transport_;
  comm::Devices devices_;
  bool uses_graph_;
  std::map<const comm::Algorithm*, std::unique_ptr<comm::DeviceGroup>> groups_{};
};

}  // namespace lockstep::reduce_all

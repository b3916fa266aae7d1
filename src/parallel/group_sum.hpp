// Sums over consecutive ranks: those whose samples batch normalization combines, or all.
// Invariant: all ranks of a group get the same bits; repeating a sum of the same length, and on devices at the same
// place, allocates nothing.
// Used by the trainer, for nn::Hooks::sum() and for running statistics.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "comm/device_plan.hpp"
#include "comm/plan.hpp"
#include "comm/transport.hpp"

namespace lockstep::parallel {

class GroupSum {
 public:
  /// Collective over `world`, which must outlive it: every `n_ranks` consecutive ranks form a group. `is_order_fixed`:
  /// sums follow the tree of a deterministic run.
  GroupSum(comm::Transport& world, int n_ranks, bool is_order_fixed);

  /// Collective over the group: the same number of values on all of its ranks.
  void sum(std::span<double> values);

 private:
  struct Prepared {
    std::vector<double> values;
    std::unique_ptr<comm::Plan> plan;
  };

  [[nodiscard]] Prepared prepare(std::size_t n_values);

  std::unique_ptr<comm::Transport> group_;
  bool is_order_fixed_;
  std::map<std::size_t, Prepared> prepared_{};  ///< by the number of values
};

/// The same for numbers in devices' memory, in the stream that makes and reads them.
class DeviceGroupSum {
 public:
  /// Collective over `world`, whose devices `devices` connects; both must outlive it.
  DeviceGroupSum(comm::Transport& world, comm::DeviceGroup& devices, int n_ranks);

  [[nodiscard]] bool only_enqueues() const noexcept { return devices_->only_enqueues(); }
  /// Collective over the group: the same number of values on all of its ranks; a place must be new on all ranks or on
  /// none.
  void sum(runtime::DeviceSpan<double> values, runtime::Stream& stream);

 private:
  std::unique_ptr<comm::Transport> group_;
  std::unique_ptr<comm::DeviceGroup> devices_;
  std::map<std::pair<const double*, std::size_t>, std::unique_ptr<comm::DevicePlan>> plans_{};
};

}  // namespace lockstep::parallel

// Sums over consecutive ranks: those whose samples batch normalization combines, or all.
// Invariant: all ranks of a group get the same bits; repeating a sum of the same length, and on devices at the same
// place, allocates nothing.
// Used by the trainer, for nn::Hooks::sum() and for running statistics.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "comm/device_plan.hpp"
#include "comm/plan.hpp"
#include "comm/transport.hpp"

namespace lockstep::parallel {

class GroupSum {
 public:
  virtual ~GroupSum() = default;

  /// Whether sum() only enqueues, so that a recorded stream may contain it.
  [[nodiscard]] virtual bool only_enqueues() const noexcept = 0;
  /// Collective over the group, in the stream that makes and reads `values`: replaces them by their sums. All ranks
  /// pass equally many. On devices their place must be new on all ranks or on none.
  virtual void sum(runtime::DeviceSpan<double> values, runtime::Stream& stream) = 0;
};

/// Sums in the host's memory, which are complete when sum() returns.
class HostGroupSum final : public GroupSum {
 public:
  /// Collective over `world`, which must outlive it: every `n_ranks` consecutive ranks form a group. `is_order_fixed`:
  /// sums follow the tree of a deterministic run.
  HostGroupSum(comm::Transport& world, int n_ranks, bool is_order_fixed);

  void sum(std::span<double> values);
  void sum(runtime::DeviceSpan<double> values, runtime::Stream& stream) override;
  [[nodiscard]] bool only_enqueues() const noexcept override { return false; }

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

/// Collective over `world`: every `n_ranks` consecutive ranks form a group. `devices` connects the devices of `world`
/// and sums in their memory; null if the host is the device. Both must outlive it.
[[nodiscard]] std::unique_ptr<GroupSum> make_group_sum(comm::Transport& world, comm::DeviceGroup* devices, int n_ranks);

}  // namespace lockstep::parallel

#include "parallel/group_sum.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "comm/registry.hpp"
#include "runtime/staging.hpp"

namespace lockstep::parallel {
namespace {

std::unique_ptr<comm::Transport> group_of(comm::Transport& world, int n_ranks) {
  return world.split(world.rank() / n_ranks, world.rank());
}

class DeviceGroupSum final : public GroupSum {
 public:
  DeviceGroupSum(comm::Transport& world, comm::DeviceGroup& devices, int n_ranks)
      : group_{group_of(world, n_ranks)}, devices_{devices.split(*group_)} {}

  [[nodiscard]] bool only_enqueues() const noexcept override { return devices_->only_enqueues(); }

  // Not run(), because these sums run among gradients' sums that ranks have started before.
  void sum(runtime::DeviceSpan<double> values, runtime::Stream& stream) override {
    auto& plan = plans_[{values.data(), values.size()}];
    if (!plan) {
      plan = devices_->make_plan({.dtype = core::DType::float64, .n_elements = values.size()});
      plan->bind(runtime::as_bytes(values), runtime::as_writable_bytes(values));
    }
    plan->start(stream);
    plan->finish(stream);
  }

 private:
  std::unique_ptr<comm::Transport> group_;
  std::unique_ptr<comm::DeviceGroup> devices_;
  std::map<std::pair<const double*, std::size_t>, std::unique_ptr<comm::DevicePlan>> plans_{};
};

}  // namespace

HostGroupSum::HostGroupSum(comm::Transport& world, int n_ranks, bool is_order_fixed)
    : group_{group_of(world, n_ranks)}, is_order_fixed_{is_order_fixed} {}

// Rounds lengths up, because many layers have nearly the same length.
void HostGroupSum::sum(std::span<double> values) {
  const std::size_t n = std::bit_ceil(values.size());
  auto found = prepared_.find(n);
  if (found == prepared_.end()) found = prepared_.emplace(n, prepare(n)).first;
  Prepared& with = found->second;
  std::fill(std::ranges::copy(values, with.values.begin()).out, with.values.end(), 0.0);
  with.plan->run();
  std::copy_n(with.values.begin(), values.size(), values.begin());
}

void HostGroupSum::sum(runtime::DeviceSpan<double> values, runtime::Stream& /*stream*/) {
  sum(runtime::on_host(values));
}

HostGroupSum::Prepared HostGroupSum::prepare(std::size_t n_values) {
  Prepared with{std::vector<double>(n_values), comm::make_plan(*group_, {.dtype = core::DType::float64,
                                                                         .n_elements = n_values,
                                                                         .is_order_fixed = is_order_fixed_})};
  const auto bytes = std::as_writable_bytes(std::span{with.values});
  with.plan->bind(bytes, bytes);
  return with;
}

std::unique_ptr<GroupSum> make_group_sum(comm::Transport& world, comm::DeviceGroup* devices, int n_ranks) {
  if (devices == nullptr) return std::make_unique<HostGroupSum>(world, n_ranks, false);
  return std::make_unique<DeviceGroupSum>(world, *devices, n_ranks);
}

}  // namespace lockstep::parallel

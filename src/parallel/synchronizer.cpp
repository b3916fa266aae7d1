#include "parallel/synchronizer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/flags.hpp"
#include "parallel/device_synchronizer.hpp"
#include "parallel/host_synchronizer.hpp"

namespace lockstep::parallel {

SlotPlace Synchronizer::place(std::size_t slot) const {
  const Arenas all = arenas();
  const auto& [offset, n] = sharding().slots()[slot].slice;
  const std::size_t of_weight = all.weights.size() / sharding().n_elements();
  return {.parameters = all.parameters.subspan(offset, n),
          .gradients = all.gradients.subspan(offset, n),
          .weights = all.weights.subspan(offset * of_weight, n * of_weight)};
}

std::unique_ptr<Synchronizer> make_synchronizer(Strategy strategy, comm::Transport& world, comm::DeviceGroup* devices,
                                                const std::vector<Slot>& slots, const SynchronizerOptions& options) {
  const bool is_host = runtime::is_host_the_device();
  if (!exists_on(!is_host, strategy))
    core::fail_usage({.what = "no synchronizer divides what this strategy divides",
                      .where = "strategy",
                      .expected = fmt::format("{}", fmt::join(core::names_of(strategies_on(!is_host)), ", "))});
  if (is_host) return std::make_unique<HostSynchronizer>(world, slots, options, strategy);
  return std::make_unique<DeviceSynchronizer>(world, devices, slots, options, strategy);
}

}  // namespace lockstep::parallel

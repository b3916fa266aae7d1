#include "parallel/synchronizer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/flags.hpp"
#include "parallel/device_synchronizer.hpp"
#include "parallel/host_synchronizer.hpp"

namespace lockstep::parallel {

std::unique_ptr<Synchronizer> make_synchronizer(Strategy strategy, comm::Transport& world, comm::DeviceGroup* devices,
                                                const std::vector<Slot>& slots, const SynchronizerOptions& options) {
  const bool is_host = runtime::is_host_the_device();
  if (!exists_on(!is_host, strategy))
    core::fail_usage({.what = "no synchronizer divides what this strategy divides",
                      .where = "strategy",
                      .expected = fmt::format("{}", fmt::join(core::names_of(strategies_on(!is_host)), ", "))});
  if (is_host) return std::make_unique<HostSynchronizer>(world, slots, options, strategy);
  return std::make_unique<DeviceSynchronizer>(world, devices, slots, options);
}

}  // namespace lockstep::parallel

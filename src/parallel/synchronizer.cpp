#include "parallel/synchronizer.hpp"

#include "parallel/device_synchronizer.hpp"
#include "parallel/host_synchronizer.hpp"

namespace lockstep::parallel {

std::unique_ptr<Synchronizer> make_synchronizer(comm::Transport& world, comm::DeviceGroup* devices,
                                                const std::vector<Slot>& slots, const SynchronizerOptions& options) {
  if (runtime::is_host_the_device()) return std::make_unique<HostSynchronizer>(world, slots, options);
  return std::make_unique<DeviceSynchronizer>(world, devices, slots, options);
}

}  // namespace lockstep::parallel

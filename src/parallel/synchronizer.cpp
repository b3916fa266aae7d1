#include "parallel/synchronizer.hpp"

#include "parallel/device_synchronizer.hpp"
#include "parallel/host_synchronizer.hpp"

namespace lockstep::parallel {

std::unique_ptr<Synchronizer> make_synchronizer(comm::Transport& world, comm::DeviceGroup* devices,
                                                std::vector<Slot> slots, const SynchronizerOptions& options) {
  if (runtime::is_host_the_device()) return std::make_unique<HostSynchronizer>(world, std::move(slots), options);
  return std::make_unique<DeviceSynchronizer>(world, devices, std::move(slots), options);
}

}  // namespace lockstep::parallel

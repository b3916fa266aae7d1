#include "comm/device_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "comm/registry.hpp"
#include "runtime/together.hpp"

namespace lockstep::comm {

std::string_view name(Registration registration) noexcept {
  switch (registration) {
    case Registration::local: return "local";
    case Registration::symmetric: return "symmetric";
    case Registration::none: break;
  }
  return "none";
}

std::unique_ptr<DeviceGroup> make_device_group(Transport& transport, const runtime::DeviceChoice& choice) {
  const Algorithm& row = choose_for_devices({}, transport, devices_of(choice));
  return row.group(row, transport);
}

std::string_view lacking_for_devices() {
  return nccl_version().empty() ? "this program is built without NCCL: build it with NCCL 2.18 or newer" : "";
}

AllConnections gather_connections(const runtime::Communicator& world, const runtime::Topology& topology,
                                  const Connection& mine) {
  AllConnections all;
  all.n_channels = runtime::broadcast_value(world, mine.n_channels);
  if (topology.n_nodes == 1) return all;
  const std::vector<std::string> networks = world.gather(mine.network);  // at rank 0
  std::vector<std::string> names = networks;
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::erase(names, "");
  all.networks = world.broadcast(fmt::format("{}", fmt::join(names, ", ")));
  const auto sockets = std::ranges::find(networks, "Socket");
  if (sockets != networks.end()) {
    const auto rank = static_cast<std::size_t>(sockets - networks.begin());
    all.warning = fmt::format(
        "NCCL uses TCP sockets between nodes on {} of {} ranks, such as rank {} on {}: it found neither InfiniBand nor "
        "a plugin for the network (on Slingshot: aws-ofi-nccl; module avail lists it); NCCL_DEBUG=INFO shows what it "
        "looked for",
        std::ranges::count(networks, "Socket"), networks.size(), rank, topology.places[rank].host);
  }
  all.warning = world.broadcast(all.warning);
  return all;
}

}  // namespace lockstep::comm

#include <hwloc.h>

#include "core/handle.hpp"
#include "core/log.hpp"
#include "runtime/processors.hpp"

namespace lockstep::runtime {
namespace {

struct HwlocPolicy {
  using Raw = hwloc_topology_t;
  static Raw null() noexcept { return nullptr; }
  static void destroy(Raw raw) noexcept { hwloc_topology_destroy(raw); }
};

using HwlocTopology = core::UniqueHandle<HwlocPolicy>;

HwlocTopology load() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return {};
  HwlocTopology topology{raw};
  // Ranks of one node may be confined to different parts of it, but one of them looks up the processors of all.
  hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  if (hwloc_topology_load(raw) != 0) return {};
  return topology;
}

int index_of_ancestor(hwloc_topology_t topology, hwloc_obj_type_t type, hwloc_obj_t processor) {
  const hwloc_obj_t ancestor = hwloc_get_ancestor_obj_by_type(topology, type, processor);
  return ancestor != nullptr ? static_cast<int>(ancestor->logical_index) : -1;
}

/// NUMA nodes are attached to the tree, not in it.
int index_of_numa(hwloc_topology_t topology, hwloc_obj_t processor) {
  hwloc_obj_t node = nullptr;
  while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != nullptr)
    if (hwloc_bitmap_isset(node->cpuset, processor->os_index) != 0) return static_cast<int>(node->logical_index);
  return -1;
}

}  // namespace

std::vector<Processor> read_processors() {
  const HwlocTopology handle = load();
  if (!handle) {
    core::log_warning("hwloc cannot read this node's topology: sockets and cores are not shown");
    return {};
  }
  const hwloc_topology_t topology = handle.get();
  std::vector<Processor> processors;
  hwloc_obj_t unit = nullptr;
  while ((unit = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, unit)) != nullptr) {
    processors.push_back({static_cast<int>(unit->os_index), index_of_ancestor(topology, HWLOC_OBJ_CORE, unit),
                          index_of_ancestor(topology, HWLOC_OBJ_PACKAGE, unit), index_of_numa(topology, unit),
                          index_of_ancestor(topology, HWLOC_OBJ_L3CACHE, unit)});
  }
  return processors;
}

}  // namespace lockstep::runtime

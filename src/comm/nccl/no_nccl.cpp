// A build without NCCL: its rows exist and report that.
#include "comm/algorithms/algorithms.hpp"
#include "core/error.hpp"

namespace lockstep::comm {

namespace {
constexpr const char* lacking = "needs NCCL, which this program is built without";
}

std::unique_ptr<DeviceGroup> nccl::make(const Algorithm& row, Transport&) {
  core::fail_usage({.what = lacking, .where = std::string{row.name}, .expected = "", .fix = ""});
}

std::optional<std::string> nccl::why_not(const Call&, const Transport&) { return lacking; }
std::optional<std::string> nccl::why_not_by_switches(const Call&, const Transport&) { return lacking; }
std::optional<std::string> nccl::why_not_by_trees_of_switches(const Call&, const Transport&) { return lacking; }
std::optional<std::string> nccl::why_not_by_switches_of_a_node(const Call&, const Transport&) { return lacking; }

std::string nccl_version() { return {}; }

void require_nccl() {}

std::optional<std::string> registration_obstacle(Registration registration) {
  return registration == Registration::none ? std::nullopt : std::optional<std::string>{lacking};
}

runtime::Buffer allocate_to_register(core::Bytes size) { return runtime::Buffer{size, runtime::Memory::device}; }

}  // namespace lockstep::comm

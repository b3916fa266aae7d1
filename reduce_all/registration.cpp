#include "reduce_all/registration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "core/log.hpp"

namespace lockstep::reduce_all {
namespace {

constexpr const char* no_library = "no NCCL row takes part";

// Collective: the groups that take part, made if necessary.
std::vector<comm::DeviceGroup*> groups_of(const Job& job) {
  std::set<const comm::Algorithm*> seen;
  std::vector<comm::DeviceGroup*> groups;
  for (const Participant& participant : job.participants)
    for (const comm::Call& call : job.calls) {
      const comm::Algorithm& algorithm = participant.runs(call, job.transport, job.groups.devices());
      if (comm::obstacle(algorithm, call, job.transport, job.groups.devices())) continue;
      if (seen.insert(&algorithm).second) groups.push_back(&job.groups.of(algorithm));
    }
  return groups;
}

}  // namespace

void check_registration(const Options& options, const runtime::DeviceChoice& device) {
  if (device.is_host()) return;
  if (const auto obstacle = comm::registration_obstacle(options.registration))
    core::fail_usage(
        {.what = fmt::format("'{}' {}", comm::name(options.registration), *obstacle),
         .where = "--register",
         .expected = "a program built and run with an NCCL that supports this registration",
         .fix = "build and run with such an NCCL (on a cluster: module load nccl), or leave out --register"});
}

std::vector<comm::DeviceGroup*> libraries_of(const Job& job) {
  std::vector<comm::DeviceGroup*> groups = groups_of(job);
  std::erase_if(groups, [](const comm::DeviceGroup* group) { return !group->registers(); });
  return groups;
}

comm::Registration find_registration(const Job& job) {
  const comm::Registration asked = job.options.registration;
  if (asked == comm::Registration::none || job.device.is_host()) return comm::Registration::none;
  const std::vector<comm::DeviceGroup*> groups = libraries_of(job);
  const runtime::Buffer sample = comm::allocate_to_register(core::Bytes{4096});
  const bool is_had = std::ranges::all_of(groups, [&](comm::DeviceGroup* group) {
    return group->register_memory(sample.on_device<std::byte>(), asked) != nullptr;
  });
  if (is_had && !groups.empty()) return asked;
  if (job.world.rank() == 0)
    core::log_warning(fmt::format("--register {} has no effect: {}", comm::name(asked),
                                  groups.empty()
                                      ? no_library
                                      : "NCCL refuses this registration on this machine (symmetric needs GPUs that all "
                                        "reach one another's memory); NCCL_DEBUG=INFO shows details"));
  return comm::Registration::none;
}

bool find_graph(const Job& job) {
  if (!job.options.graph || job.device.is_host()) return false;
  const bool is_had = std::ranges::any_of(groups_of(job), &comm::DeviceGroup::only_enqueues);
  if (!is_had && job.world.rank() == 0) core::log_warning(fmt::format("--graph has no effect: {}", no_library));
  return is_had;
}

}  // namespace lockstep::reduce_all

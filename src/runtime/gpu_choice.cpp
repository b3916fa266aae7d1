#include "runtime/gpu_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "core/fnv.hpp"
#include "runtime/processor_list.hpp"
#include "runtime/session.hpp"
#include "runtime/together.hpp"

namespace lockstep::runtime {
namespace {

core::Error without_gpu(const GpuSurvey& survey) {
  return core::Error{core::ExitCode::usage,
                     {.what = fmt::format("rank on {} has no GPU: {}", host_name(), survey.obstacle),
                      .where = "--device cuda",
                      .expected = "an NVIDIA GPU for every rank",
                      .fix = survey.fix.empty() ? "--device host, or auto" : survey.fix + "; or --device host"}};
}

// Gathers a word without line breaks from every rank, on all ranks.
std::vector<std::string> gather_everywhere(const Communicator& world, const std::string& word) {
  std::string lines;
  for (const std::string& of_rank : world.gather(word)) lines += of_rank + '\n';
  lines = world.broadcast(lines);
  std::vector<std::string> words;
  for (std::size_t begin = 0, end = 0; (end = lines.find('\n', begin)) != std::string::npos; begin = end + 1)
    words.push_back(lines.substr(begin, end - begin));
  return words;
}

// Describes which GPUs a rank sees, followed by its nearness to each.
std::string describe_sight(const std::vector<Gpu>& gpus, const Place& me) {
  std::string uuids, nearness;
  for (const Gpu& gpu : gpus) {
    uuids += gpu.uuid;
    nearness += gpu.processors.empty() || have_common(gpu.processors, me.cpus) ? '1' : '0';
  }
  return fmt::format("{:016x}{}", core::fnv1a(uuids), nearness);
}

struct Assigned {
  int number = 0;
  std::vector<int> far{};
};

// Ranks of a node that see the same GPUs form a group; if a launcher shows each rank a different GPU, each is a group.
Assigned assign(const std::vector<std::string>& sights, const Topology& topology, int rank) {
  constexpr std::size_t n_digits = 16;
  std::map<std::pair<int, std::string>, std::vector<std::size_t>> groups;
  for (std::size_t r = 0; r < sights.size(); ++r)
    groups[{topology.places[r].node, sights[r].substr(0, n_digits)}].push_back(r);
  Assigned result;
  for (const auto& [seen, ranks] : groups) {
    std::vector<std::string> nearness;
    for (const std::size_t r : ranks) nearness.push_back(sights[r].substr(n_digits));
    const std::vector<int> numbers = assign_gpus(nearness);
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (ranks[i] == static_cast<std::size_t>(rank)) result.number = numbers[i];
      if (nearness[i][static_cast<std::size_t>(numbers[i])] == '0') result.far.push_back(static_cast<int>(ranks[i]));
    }
  }
  std::ranges::sort(result.far);
  return result;
}

// Returns a sentence about two ranks with the same GPU; empty if there are none. Parts of one GPU (MIG) have their own
// UUIDs but the same entry in `slots`, and NCCL treats them as the same GPU.
std::string find_shared(const std::vector<std::string>& uuids, const std::vector<std::string>& slots) {
  for (std::size_t rank = 0; rank < uuids.size(); ++rank)
    for (std::size_t before = 0; before < rank; ++before)
      if (uuids[rank] == uuids[before] || slots[rank] == slots[before])
        return fmt::format("ranks {} and {} share one GPU, {}", before, rank, uuids[rank]);
  return {};
}

// NCCL refuses ranks that share a GPU unless NCCL_HOSTID gives them different hosts.
bool name_different_hosts(const Communicator& world) {
  const char* const own = std::getenv("NCCL_HOSTID");
  std::vector<std::string> hosts = gather_everywhere(world, own == nullptr ? "" : own);
  std::ranges::sort(hosts);
  return !hosts.front().empty() && std::ranges::adjacent_find(hosts) == hosts.end();
}

}  // namespace

std::string_view name(DeviceKind kind) noexcept {
  switch (kind) {
    case DeviceKind::host: return "host";
    case DeviceKind::cuda: return "cuda";
    case DeviceKind::automatic: break;
  }
  return "auto";
}

std::vector<int> assign_gpus(const std::vector<std::string>& nearness) {
  std::vector<int> numbers(nearness.size(), -1);
  const std::size_t n_gpus = nearness.empty() ? 0 : nearness.front().size();
  for (std::size_t first = 0; first < nearness.size(); first += n_gpus) {
    std::vector<bool> is_free(n_gpus, true);
    const std::size_t end = std::min(first + n_gpus, nearness.size());
    const auto give = [&](std::size_t rank, const auto& may) {
      for (std::size_t gpu = 0; gpu < n_gpus && numbers[rank] < 0; ++gpu) {
        if (!is_free[gpu] || !may(gpu)) continue;
        is_free[gpu] = false;
        numbers[rank] = static_cast<int>(gpu);
      }
    };
    for (std::size_t n_near = 1; n_near <= n_gpus; ++n_near)
      for (std::size_t rank = first; rank < end; ++rank)
        if (std::ranges::count(nearness[rank], '1') == static_cast<std::ptrdiff_t>(n_near))
          give(rank, [&](std::size_t gpu) { return nearness[rank][gpu] == '1'; });
    for (std::size_t rank = first; rank < end; ++rank) give(rank, [](std::size_t) { return true; });
  }
  return numbers;
}

DeviceChoice choose_device(const Communicator& world, const Topology& topology, const DeviceRequest& request) {
  if (request.kind == DeviceKind::host) return {};
  const GpuSurvey survey = survey_gpus();
  const std::optional<core::Error> lacking = survey.gpus.empty() ? std::optional{without_gpu(survey)} : std::nullopt;
  const bool is_asked = request.kind == DeviceKind::cuda;
  if (is_asked)
    together(world, [&] {
      if (lacking) throw core::Error{*lacking};
    });
  if (const Speaker speaker = find_speaker(world, lacking); speaker.rank >= 0)
    return {.why_not = world.broadcast(survey.toolkit.empty() ? "" : survey.obstacle, speaker.rank)};
  const Place& me = topology.places[static_cast<std::size_t>(world.rank())];
  const Assigned mine = assign(gather_everywhere(world, describe_sight(survey.gpus, me)), topology, world.rank());
  const Gpu& gpu = survey.gpus[static_cast<std::size_t>(mine.number)];
  std::vector<std::string> uuids = gather_everywhere(world, gpu.uuid);
  const std::string shared = find_shared(uuids, gather_everywhere(world, fmt::format("{} {}", me.node, gpu.pci)));
  if (!shared.empty() && !request.shares_gpu) {
    if (!is_asked) return {.why_not = shared};
    core::fail_usage(
        {.what = shared,
         .where = "--device cuda",
         .expected = "a GPU for every rank",
         .fix = "start fewer ranks per node, or ask the batch system for more GPUs; --share-gpu lets ranks share one"});
  }
  const auto have_all = [&](bool has) {
    return std::ranges::count(gather_everywhere(world, has ? "yes" : "no"), "no") == 0;
  };
  const auto n_sharing = static_cast<int>(std::ranges::count(uuids, gpu.uuid));
  return {.number = mine.number,
          .gpu = gpu,
          .n_sharing = n_sharing,
          .is_shared = !shared.empty(),
          .has_hosts_for_nccl = !shared.empty() && name_different_hosts(world),
          .all_have_switches = have_all(gpu.has_switches),
          .all_have_bf16 = have_all(gpu.has_bf16()),
          .driver = survey.driver,
          .toolkit = survey.toolkit,
          .all = std::move(uuids),
          .far = mine.far};
}

DeviceTraits traits_of(DeviceKind kind) noexcept {
  if (kind == DeviceKind::host) return {};
  return {.has_own_memory = true, .runs_behind = true, .adds_lanes = false, .sums_rows = false, .has_f16 = true};
}

DeviceTraits traits_of(const DeviceChoice& choice) noexcept {
  DeviceTraits traits = traits_of(choice.is_host() ? DeviceKind::host : DeviceKind::cuda);
  if (!choice.is_host()) traits.has_bf16 = choice.all_have_bf16;
  return traits;
}

std::string warning_of_far_gpus(const DeviceChoice& choice, const Topology& topology) {
  if (choice.far.empty()) return {};
  const int rank = choice.far.front();
  return fmt::format(
      "{} of {} ranks run{} on processors far from their GPU, such as rank {} on {}: bind ranks to cores, and let each "
      "rank see all GPUs of its node (srun without --gpu-bind), so that it uses a near one; nvidia-smi topo -m shows "
      "which are near",
      choice.far.size(), choice.all.size(), choice.far.size() == 1 ? "s" : "", rank,
      topology.places[static_cast<std::size_t>(rank)].host);
}

UseDevice::UseDevice(const DeviceChoice& choice) : is_in_use_{!choice.is_host()} {
  if (is_in_use_) exchange_accelerator(open_gpu(choice.number));
}
UseDevice::~UseDevice() {
  if (is_in_use_) exchange_accelerator(nullptr);
}

}  // namespace lockstep::runtime

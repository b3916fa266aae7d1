#include "runtime/gpu_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "runtime/session.hpp"
#include "runtime/together.hpp"

namespace lockstep::runtime {
namespace {

// Where a launcher gave each rank a GPU of its own to see, that one; else those that all see, in turn.
int number_for(const Place& me, std::size_t n_gpus) {
  return static_cast<int>(static_cast<std::size_t>(me.local_rank) % n_gpus);
}

core::Error without_gpu(const GpuSurvey& survey) {
  return core::Error{core::ExitCode::usage,
                     {.what = fmt::format("rank on {} has no GPU: {}", host_name(), survey.obstacle),
                      .where = "--device cuda",
                      .expected = "an NVIDIA GPU for every rank",
                      .fix = survey.fix.empty() ? "--device host, or auto" : survey.fix + "; or --device host"}};
}

// Words of all ranks, which have no line breaks.
std::vector<std::string> gather_everywhere(const Communicator& world, const std::string& word) {
  std::string lines;
  for (const std::string& of_rank : world.gather(word)) lines += of_rank + '\n';
  lines = world.broadcast(lines);
  std::vector<std::string> words;
  for (std::size_t begin = 0, end = 0; (end = lines.find('\n', begin)) != std::string::npos; begin = end + 1)
    words.push_back(lines.substr(begin, end - begin));
  return words;
}

// Ranks that have the same GPU as one before, as a sentence; empty if there are none.
std::string find_shared(const std::vector<std::string>& uuids) {
  for (std::size_t rank = 0; rank < uuids.size(); ++rank)
    for (std::size_t before = 0; before < rank; ++before)
      if (uuids[rank] == uuids[before])
        return fmt::format("ranks {} and {} have one GPU, {}", before, rank, uuids[rank]);
  return {};
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
  const int number = number_for(topology.places[static_cast<std::size_t>(world.rank())], survey.gpus.size());
  const Gpu& gpu = survey.gpus[static_cast<std::size_t>(number)];
  std::vector<std::string> uuids = gather_everywhere(world, gpu.uuid);
  const std::string shared = find_shared(uuids);
  if (!shared.empty() && !request.shares_gpu) {
    if (!is_asked) return {.why_not = shared};
    core::fail_usage(
        {.what = shared,
         .where = "--device cuda",
         .expected = "a GPU for every rank",
         .fix = "fewer ranks on a node, or ask the batch system for more GPUs; --share-gpu lets them share"});
  }
  const auto switches = gather_everywhere(world, gpu.has_switches ? "yes" : "no");
  const auto n_sharing = static_cast<int>(std::ranges::count(uuids, gpu.uuid));
  return {.number = number,
          .gpu = gpu,
          .n_sharing = n_sharing,
          .is_shared = !shared.empty(),
          .all_have_switches = std::ranges::count(switches, "no") == 0,
          .driver = survey.driver,
          .toolkit = survey.toolkit,
          .all = std::move(uuids)};
}

UseDevice::UseDevice(const DeviceChoice& choice) : is_in_use_{!choice.is_host()} {
  if (is_in_use_) exchange_accelerator(open_gpu(choice.number));
}
UseDevice::~UseDevice() {
  if (is_in_use_) exchange_accelerator(nullptr);
}

}  // namespace lockstep::runtime

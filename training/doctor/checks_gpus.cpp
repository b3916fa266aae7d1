// Whether ranks have the GPUs that a job would compute on.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "core/suggest.hpp"
#include "core/units.hpp"
#include "training/doctor/checks.hpp"

namespace lockstep::training::doctor {
namespace {

/// The ranks of one node, and the job's requirements for its GPUs.
struct NodeOfGpus {
  const Job& job;
  int number;
  std::vector<std::size_t> ranks;
  bool is_asked;  ///< --device cuda: without them the job fails

  [[nodiscard]] const Facts& first() const { return job.ranks[ranks.front()]; }
  [[nodiscard]] Verdict trouble() const { return is_asked ? Verdict::fail : Verdict::warning; }
};

std::string how_many(std::size_t n, std::string_view what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

bool sees_none(const Facts& facts) { return facts.gpus.seen.empty(); }

Finding judge_host_program(const NodeOfGpus& node) {
  const std::vector<std::string>& devices = node.first().node.gpus;
  if (node.is_asked)
    return {.verdict = Verdict::fail,
            .seen = "this program is built without CUDA",
            .fix = "build it with nvcc and cuDNN (INSTALL), or use --device host"};
  if (devices.empty()) return skip("no NVIDIA GPU here, and this program is built without CUDA");
  return {.verdict = Verdict::note,
          .seen = fmt::format("{} x {}; this program is built without CUDA and computes on the host", devices.size(),
                              devices.front()),
          .fix = "build it with nvcc and cuDNN (INSTALL); nodes without GPUs may cost less"};
}

/// The obstacle between some rank and a GPU.
std::optional<Finding> find_obstacle(const NodeOfGpus& node) {
  const auto rank =
      std::ranges::find_if(node.ranks, [&](std::size_t number) { return sees_none(node.job.ranks[number]); });
  if (rank == node.ranks.end()) return std::nullopt;
  const GpuFacts& gpus = node.job.ranks[*rank].gpus;
  const bool is_for_all =
      std::ranges::all_of(node.ranks, [&](std::size_t number) { return sees_none(node.job.ranks[number]); });
  if (!node.is_asked && is_for_all && node.first().node.gpus.empty())
    return skip("no GPU for this job: " + gpus.obstacle);
  const std::string who =
      is_for_all ? "" : fmt::format("{}, unlike other ranks of its node: ", name_rank(node.job, *rank));
  return Finding{.verdict = node.trouble(),
                 .seen = who + gpus.obstacle + (node.is_asked ? "" : "; the job would compute on the host"),
                 .fix = gpus.fix};
}

/// Two ranks that see only the same GPU.
std::optional<Finding> find_shared(const NodeOfGpus& node) {
  std::map<std::string, std::size_t> first_with;
  for (const std::size_t rank : node.ranks) {
    const std::vector<SeenGpu>& seen = node.job.ranks[rank].gpus.seen;
    if (seen.size() != 1) continue;
    const auto [first, is_new] = first_with.try_emplace(seen.front().uuid, rank);
    if (!is_new)
      return Finding{.verdict = node.trouble(),
                     .seen = fmt::format("{} and rank {} see only {}", name_rank(node.job, first->second), rank,
                                         seen.front().uuid),
                     .fix =
                         "request a GPU for each rank of a node (--gpus-per-node), and show all to each rank (srun "
                         "without --gpu-bind); or let ranks share one with --share-gpu"};
  }
  return std::nullopt;
}

std::string describe_versions(const GpuFacts& gpus) {
  std::string text = fmt::format("driver for CUDA {}, program with {}", gpus.driver, gpus.toolkit);
  if (!gpus.cudnn.empty()) text += ", cuDNN " + gpus.cudnn;
  if (!gpus.nccl.empty()) text += ", NCCL " + gpus.nccl;
  return text;
}

/// "; rank 0: GPU-8f6d1a2b, rank 1: ..." if each rank sees one.
std::string describe_owners(const NodeOfGpus& node) {
  constexpr std::size_t shown = 12;
  std::vector<std::string> owners;
  for (const std::size_t rank : node.ranks) {
    const std::vector<SeenGpu>& seen = node.job.ranks[rank].gpus.seen;
    if (seen.size() != 1) return "; each rank may use any";
    owners.push_back(fmt::format("rank {}: {}", rank, seen.front().uuid.substr(0, shown)));
  }
  return "; " + core::join(owners);
}

std::string describe_need(const Need* need) {
  return need == nullptr ? "" : fmt::format("; {} needed per rank", core::format_decimal({need->of_gpu->of_device()}));
}

Finding judge_node(const NodeOfGpus& node) {
  if (node.first().gpus.toolkit.empty()) return judge_host_program(node);
  if (auto obstacle = find_obstacle(node)) return *obstacle;
  std::map<std::string, std::string> names;  // by UUID
  for (const std::size_t rank : node.ranks)
    for (const SeenGpu& gpu : node.job.ranks[rank].gpus.seen) names.emplace(gpu.uuid, gpu.name);
  if (!node.job.request.shares_gpu) {
    if (auto shared = find_shared(node)) return *shared;
    if (node.ranks.size() > names.size())
      return {.verdict = node.trouble(),
              .seen = fmt::format("{} ranks for {}", node.ranks.size(), how_many(names.size(), "GPU")),
              .fix = "start one rank per GPU (--ntasks-per-node, mpiprocs); or let ranks share one with --share-gpu"};
    if (const GpuFacts& gpus = node.first().gpus; node.job.ranks.size() > 1 && !gpus.nccl_obstacle.empty())
      return {.verdict = Verdict::fail, .seen = gpus.nccl_obstacle, .fix = gpus.nccl_fix};
  }
  const Need* const job_need = node.job.need && node.job.need->of_gpu ? &*node.job.need : nullptr;
  std::set<std::string> kinds;
  for (const auto& [uuid, name] : names) kinds.insert(name);
  if (job_need != nullptr)
    if (const auto misfit = job_need->gpu_misfits.find(node.number); misfit != job_need->gpu_misfits.end())
      return {.verdict = Verdict::fail, .seen = misfit->second.problem().what, .fix = misfit->second.problem().fix};
  return {.seen = fmt::format("{} x {} for {}; {}{}{}", names.size(),
                              core::join(std::vector<std::string>{kinds.begin(), kinds.end()}, " and "),
                              how_many(node.ranks.size(), "rank"), describe_versions(node.first().gpus),
                              describe_owners(node), describe_need(job_need))};
}

}  // namespace

bool computes_on_gpus(const Job& job) {
  const bool has_all = std::ranges::none_of(job.ranks, sees_none);
  return has_all && job.request.device != "host" && check_gpus(job).verdict == Verdict::ok;
}

Finding check_gpus(const Job& job) {
  if (job.request.device == "host") return skip("the job computes on the host");
  Placed<Finding> findings;
  const std::vector<const Facts*> nodes = job.nodes();
  for (std::size_t number = 0; number < nodes.size(); ++number) {
    NodeOfGpus node{
        .job = job, .number = static_cast<int>(number), .ranks = {}, .is_asked = job.request.device == "cuda"};
    for (std::size_t rank = 0; rank < job.ranks.size(); ++rank)
      if (job.topology.places[rank].node == static_cast<int>(number)) node.ranks.push_back(rank);
    findings.emplace_back(nodes[number]->host, judge_node(node));
  }
  return merge(findings);
}

}  // namespace lockstep::training::doctor

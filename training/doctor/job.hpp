// Everything that rank 0 knows about a job when it judges: where ranks run, their facts, and the request.
// Invariant: ranks and nodes are in order; there is at least one of each.
// Used by the checks; made by collect.cpp, and by tests.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/units.hpp"
#include "runtime/topology.hpp"
#include "training/doctor/facts.hpp"
#include "training/doctor/finding.hpp"
#include "training/doctor/request.hpp"
#include "training/recipe/recipe.hpp"
#include "training/train/memory.hpp"

namespace lockstep::training::doctor {

/// The needs of training a recipe.
struct Need {
  Recipe recipe{};
  std::map<std::uint64_t, MemoryNeed> memory{};  ///< by ranks of a node; none on GPUs
  std::optional<MemoryNeed> of_gpu{};            ///< of a rank, on GPUs
  std::map<int, core::Error> gpu_misfits{};      ///< by node: why its GPUs lack room
  core::Bytes checkpoint{};
};

struct Job {
  Request request{};
  runtime::Topology topology{};
  std::vector<Facts> ranks{};
  std::optional<Need> need{};           ///< of --recipe
  std::optional<core::Error> misfit{};  ///< why the recipe cannot be trained, or its need is unknown

  [[nodiscard]] int n_ranks() const noexcept { return static_cast<int>(ranks.size()); }
  [[nodiscard]] bool has_launcher() const noexcept { return !ranks.front().launcher.empty(); }
  /// For checks of MPI's own variables: whether a launcher has started several processes, each of which is a job of one
  /// rank.
  [[nodiscard]] bool is_singletons() const noexcept { return n_ranks() == 1 && ranks.front().launched_ranks > 1; }
  /// The first rank of each node.
  [[nodiscard]] std::vector<const Facts*> nodes() const;
  [[nodiscard]] std::uint64_t n_local(std::size_t node) const;
};

/// "rank 3 (node7)".
[[nodiscard]] std::string name_rank(const Job& job, std::size_t rank);

/// The results of `judge` for each node, merged.
template <class Judge>
[[nodiscard]] Finding for_nodes(const Job& job, Judge judge) {
  Placed<Finding> findings;
  for (const Facts* facts : job.nodes()) findings.emplace_back(facts->host, judge(*facts));
  return merge(findings);
}

/// The results of `judge` for each rank, merged by node if ranks of a node agree.
template <class Judge>
[[nodiscard]] Finding for_ranks(const Job& job, Judge judge) {
  Placed<Finding> findings;
  for (const Facts& facts : job.ranks) findings.emplace_back(facts.host, judge(facts));
  return merge(findings);
}

/// Collective: the whole job at rank 0; elsewhere only the topology is valid.
[[nodiscard]] Job examine(const runtime::Communicator& world, const Request& request);

}  // namespace lockstep::training::doctor

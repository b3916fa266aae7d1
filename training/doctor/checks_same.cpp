// Facts that nodes and ranks must agree in.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <set>

#include "core/suggest.hpp"
#include "core/units.hpp"
#include "training/doctor/checks.hpp"
#include "training/doctor/variables.hpp"

namespace lockstep::training::doctor {
namespace {

constexpr double largest_skew_s = 1;
constexpr std::size_t most_shown = 5;

bool is_one_value(const Placed<std::string>& values) {
  return std::ranges::all_of(values, [&](const auto& entry) { return entry.second == values.front().second; });
}

/// Whether ranks of one node differ, so that the node's name is not enough.
bool differs_within_nodes(const Job& job, const std::vector<std::string>& values) {
  std::map<int, std::string> of_node;
  for (std::size_t rank = 0; rank < values.size(); ++rank)
    if (of_node.try_emplace(job.topology.places[rank].node, values[rank]).first->second != values[rank]) return true;
  return false;
}

/// By node, or by rank if ranks of a node differ.
Placed<std::string> place(const Job& job, const std::vector<std::string>& values) {
  const bool is_by_rank = differs_within_nodes(job, values);
  Placed<std::string> placed;
  for (std::size_t rank = 0; rank < values.size(); ++rank)
    placed.emplace_back(is_by_rank ? name_rank(job, rank) : job.ranks[rank].host, values[rank]);
  return placed;
}

/// "name: a on node1; b on node2" for all that differ, up to a few.
std::vector<std::string> differences(const Job& job, const std::set<std::string>& names,
                                     const std::function<std::string(const Facts&, const std::string&)>& value_of) {
  std::vector<std::string> texts;
  for (const std::string& name : names) {
    std::vector<std::string> values;
    for (const Facts& facts : job.ranks) values.push_back(value_of(facts, name));
    const Placed<std::string> placed = place(job, values);
    if (!is_one_value(placed)) texts.push_back(fmt::format("{}: {}", name, describe(placed)));
  }
  if (texts.size() <= most_shown) return texts;
  const std::size_t n_more = texts.size() - most_shown;
  texts.resize(most_shown);
  texts.push_back(fmt::format("{} more", n_more));
  return texts;
}

std::string describe(const Library& library) {
  std::tm when{};
  const std::time_t modified = library.modified;
  gmtime_r(&modified, &when);
  std::array<char, 32> date{};
  std::strftime(date.data(), date.size(), "%Y-%m-%d %H:%M:%S", &when);
  return fmt::format("{} ({}, of {})", library.path, core::format_decimal({library.bytes}), date.data());
}

std::string library_of(const Facts& facts, const std::string& name) {
  const auto found = std::ranges::find(facts.libraries, name, &Library::name);
  return found == facts.libraries.end() ? "not loaded" : describe(*found);
}

std::string variable_of(const Facts& facts, const std::string& name) {
  const auto found = facts.variables.find(name);
  return found == facts.variables.end() ? "not set" : fmt::format("'{}'", found->second);
}

/// The least distance of the clocks that the bounds guarantee.
double sure_skew(const NodeFacts& node) noexcept {
  return node.clock_low > 0 ? node.clock_low : std::max(0.0, -node.clock_high);
}

Finding judge_clock(const Facts& facts) {
  if (sure_skew(facts.node) <= largest_skew_s) return {.seen = fmt::format("within {:g} s", largest_skew_s)};
  return {.verdict = Verdict::warning,
          .seen = fmt::format("{:.1f} s {} rank 0's", sure_skew(facts.node),
                              facts.node.clock_low > 0 ? "ahead of" : "behind"),
          .fix = "check NTP (chronyc tracking): times of logs and files are not comparable"};
}

Finding judge_names(const Facts& facts) {
  const NodeFacts& node = facts.node;
  if (node.n_resolved < 0)
    return {.verdict = Verdict::warning,
            .seen = "the name service did not answer within 5 s",
            .fix = "check DNS of these nodes (getent hosts NODE): MPI may start slowly or not at all"};
  if (node.unresolved.empty()) return {.seen = "all known"};
  return {.verdict = Verdict::warning,
          .seen = fmt::format("unknown: {}", core::join(node.unresolved)),
          .fix = "have them added to DNS or /etc/hosts, and check with getent hosts NODE"};
}

/// Shows only the version if it differs, because a digest means nothing to a reader.
std::string describe_program(const Facts& facts) {
  return fmt::format("lockstep {}, digest {}", facts.version,
                     facts.digest.empty() ? "unknown" : facts.digest.substr(0, 8));
}

}  // namespace

Finding check_clocks(const Job& job) {
  if (job.topology.n_nodes == 1) return skip("one node");
  return for_nodes(job, judge_clock);
}

Finding check_names(const Job& job) {
  if (job.topology.n_nodes == 1) return skip("one node");
  return for_nodes(job, judge_names);
}

Finding check_program(const Job& job) {
  std::vector<std::string> programs;
  for (const Facts& facts : job.ranks) programs.push_back(describe_program(facts));
  const Placed<std::string> placed = place(job, programs);
  if (is_one_value(placed)) return {.seen = programs.front()};
  return {.verdict = Verdict::fail,
          .seen = doctor::describe(placed),
          .fix = "start the same file on all ranks, from a file system that all nodes share, or install it again"};
}

Finding check_libraries(const Job& job) {
  if (job.n_ranks() == 1) return skip("one rank");
  std::set<std::string> names;
  for (const Facts& facts : job.ranks)
    for (const Library& library : facts.libraries) names.insert(library.name);
  const std::vector<std::string> different = differences(job, names, library_of);
  if (different.empty()) return {.seen = fmt::format("{} compared", names.size())};
  return {.verdict = Verdict::warning,
          .seen = core::join(different, "\n"),
          .fix = "load the same modules on all nodes; LD_LIBRARY_PATH or the nodes' images differ"};
}

Finding check_variables(const Job& job) {
  if (job.n_ranks() == 1) return skip("one rank");
  std::set<std::string> names;
  for (const Facts& facts : job.ranks)
    for (const auto& [name, value] : facts.variables)
      if (!is_of_rank(name)) names.insert(name);
  const std::vector<std::string> different = differences(job, names, variable_of);
  if (different.empty()) return {.seen = fmt::format("{} compared", names.size())};
  return {.verdict = Verdict::warning,
          .seen = core::join(different, "\n"),
          .fix = "set them alike on all ranks: mpirun -x NAME, srun --export=ALL"};
}

Finding check_nodes_alike(const Job& job) {
  if (job.topology.n_nodes == 1) return skip("one node");
  Placed<std::string> placed;
  for (const Facts* facts : job.nodes())
    placed.emplace_back(facts->host, fmt::format("{}, {}", facts->node.cpu_model, facts->node.kernel));
  if (is_one_value(placed)) return {.seen = placed.front().second};
  return {
      .verdict = Verdict::note,
      .seen = doctor::describe(placed),
      .fix = "nothing, if this is intended; the slowest node sets the pace: srun --constraint, select=...:cpu_type"};
}

}  // namespace lockstep::training::doctor

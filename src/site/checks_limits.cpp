#include <fmt/format.h>

#include <algorithm>

#include "core/suggest.hpp"
#include "site/checks.hpp"
#include "site/text.hpp"

namespace lockstep::site {
namespace {

/// What the job may have: of its partition, and of the kind of nodes that its constraint chooses.
Nodes limits_of(const Look& look, const Partition* partition) {
  Nodes nodes = partition != nullptr ? partition->nodes : Nodes{};
  const Kind* const kind = find_kind(look.site, look.request.constraint);
  if (kind == nullptr) return nodes;
  const auto take = [](int& into, int of_kind) { into = of_kind != 0 ? of_kind : into; };
  take(nodes.most, kind->nodes.most);
  take(nodes.cores, kind->nodes.cores);
  take(nodes.memory_gb, kind->nodes.memory_gb);
  take(nodes.gpus, kind->nodes.gpus);
  if (!kind->nodes.gpu.empty()) nodes.gpu = kind->nodes.gpu;
  return nodes;
}

/// More than `most`, where that is known.
template <class Value>
void check_most(const std::optional<Asked<Value>>& asked, int most, const std::string& what, std::string_view why,
                std::string_view fix, const Look& look) {
  if (!asked || most == 0 || asked->value <= most) return;
  look.error(asked->line, what, std::string{why}, fix.empty() ? fmt::format("at most {}", most) : std::string{fix});
}
constexpr std::string_view never_starts = "the job is refused, or never starts";

void check_partition(const Look& look, std::string_view name, int line) {
  if (look.site.partitions.empty() || find_partition(look.site, name) != nullptr) return;
  if (std::ranges::find(look.site.not_here, name) != look.site.not_here.end()) {
    look.error(line, fmt::format("there is no '{}' on {}", name, look.site.title), "it is of another cluster");
    return;
  }
  std::vector<std::string> names;
  for (const Partition& partition : look.site.partitions) names.push_back(partition.name);
  const auto near = near_name(name, names);
  look.add(near ? Severity::error : Severity::note, line,
           fmt::format("'{}' is not among the partitions or queues that {} documents", name, look.site.title), "",
           near ? fmt::format("did you mean {}?", *near) : fmt::format("one of {}", core::join(names)));
}

void check_threads(const Chunk& chunk, const Look& look, const Nodes& limits) {
  const auto& variables = look.script.variables;
  const auto last = std::find_if(variables.rbegin(), variables.rend(),
                                 [](const Variable& variable) { return variable.name == "OMP_NUM_THREADS"; });
  if (last == variables.rend()) return;
  const auto threads = whole_number(last->value);
  if (!threads || *threads <= 0 || *threads > 1'000'000) return;
  const long ranks = chunk.ranks ? chunk.ranks->value : 1;
  const long of_rank = chunk.cores_of_rank ? chunk.cores_of_rank->value : 0;
  if (of_rank != 0 && *threads > of_rank)
    look.warning(last->line, fmt::format("OMP_NUM_THREADS={} with {} cores a rank", *threads, of_rank),
                 "threads that share a core make each other wait", fmt::format("OMP_NUM_THREADS={}", of_rank));
  else if (limits.cores != 0 && ranks * *threads > limits.cores && chunk.gpus)
    look.warning(last->line, fmt::format("{} ranks a node with OMP_NUM_THREADS={}", ranks, *threads),
                 fmt::format("a node has {} cores", limits.cores), "fewer threads");
}

void check_chunk(const Chunk& chunk, const Look& look, const Nodes& limits) {
  const bool is_cpu_job = !chunk.gpus && limits.cpu_cores != 0;
  const auto value = [](const auto& asked) { return asked ? asked->value : 0; };
  check_most(chunk.nodes, is_cpu_job ? limits.cpu_most : limits.most, fmt::format("{} nodes", value(chunk.nodes)),
             never_starts, "", look);
  const int cores = is_cpu_job ? limits.cpu_cores : limits.cores;
  check_most(chunk.cores, cores,
             chunk.cores_of_rank && chunk.ranks
                 ? fmt::format("{} ranks a node with {} cores each are {} cores", chunk.ranks->value,
                               chunk.cores_of_rank->value, chunk.cores->value)
                 : fmt::format("{} cores of a node", value(chunk.cores)),
             fmt::format("a node of {} has {} for jobs", look.site.title, cores), "", look);
  const int memory = is_cpu_job ? limits.cpu_memory_gb : limits.memory_gb;
  check_most(chunk.memory_gb, memory, fmt::format("{:.4g} GB of a node's memory", value(chunk.memory_gb)),
             fmt::format("it has {}, a little less for jobs", memory), "0 of Slurm is all of it", look);
  check_most(chunk.gpus, limits.gpus, fmt::format("{} GPUs of a node", value(chunk.gpus)), never_starts, "", look);
  auto all_gpus = chunk.gpus;
  if (all_gpus && chunk.nodes) all_gpus->value *= chunk.nodes->value;
  check_most(all_gpus, look.site.most_gpus, fmt::format("{} GPUs in all", value(all_gpus)),
             fmt::format("a user of {} may have {}", look.site.title, look.site.most_gpus), "", look);
  const auto& gone = look.site.gone_gpus;
  const bool is_other = chunk.gpu && !contains_ignoring_case(chunk.gpu->value, limits.gpu);  // "nvidia_A100" is a100
  if (is_other && std::ranges::find(gone, chunk.gpu->value) == gone.end())
    look.error(chunk.gpu->line, fmt::format("GPUs of type '{}'", chunk.gpu->value), "these nodes have others",
               limits.gpu);
  check_threads(chunk, look, limits);
}

/// The greatest index of "0-15", "1,3,5-7" or "0-15:4%2".
long greatest_index(std::string_view array) {
  long greatest = 0;
  for (const std::string_view part : split(array.substr(0, array.find('%')), ','))
    for (const std::string_view end : split(part.substr(0, part.find(':')), '-'))
      greatest = std::max(greatest, whole_number(end).value_or(0));
  return greatest;
}

void check_array(const Look& look) {
  const Flag* const array = directive(look.script, "array");
  if (array == nullptr || !array->value) return;
  const Asked<long> greatest{greatest_index(*array->value), array->line};
  check_most(std::optional{greatest}, look.site.most_index,
             fmt::format("a job array with the index {}", greatest.value), "the job is refused", "", look);
}

void check_qos(const Look& look) {
  const Flag* const qos = directive(look.script, "qos");
  const auto& chunks = look.request.chunks;
  const bool wants_gpus = !chunks.empty() && chunks.front().gpus && chunks.front().gpus->value > 0;
  const std::string& end = look.site.cpu_qos_ends;
  if (qos == nullptr || !qos->value || end.empty() || !qos->value->ends_with(end) || !wants_gpus) return;
  look.error(qos->line, fmt::format("GPUs with the QOS '{}'", *qos->value),
             fmt::format("those that end in {} have none on {}", end, look.site.title),
             qos->value->substr(0, qos->value->size() - end.size()));
}

/// GPUs of no model, or nodes of several kinds.
void check_model(const Look& look) {
  if (look.site.needs_company.empty() || look.request.chunks.empty() || !look.request.chunks.front().gpus) return;
  const Chunk& chunk = look.request.chunks.front();
  const auto features = features_of(look.request.constraint);
  if (features.empty() && !chunk.gpu)
    look.warning(chunk.gpus->line, "GPUs of no model", fmt::format("{} then gives the oldest ones", look.site.title),
                 "--constraint=\"a100&4gpus\"");
  const Flag* const constraint = directive(look.script, "constraint");
  const auto& alone = look.site.needs_company;
  if (features.size() == 1 && std::ranges::find(alone, *features.begin()) != alone.end())
    look.warning(constraint->line, fmt::format("--constraint={} alone", *features.begin()),
                 "it mixes nodes with different numbers of GPUs and networks",
                 *features.begin() == "v100" ? "--constraint=\"v100&gpu_ai\"" : "--constraint=\"a100&4gpus\"");
}

}  // namespace

void check_limits(const Look& look) {
  const Partition* partition = nullptr;
  if (const auto& asked = look.request.partition) {
    for (const std::string_view name : split(asked->value, ',')) check_partition(look, name, asked->line);
    partition = find_partition(look.site, asked->value);
  }
  const Nodes limits = limits_of(look, partition);
  for (const Chunk& chunk : look.request.chunks) check_chunk(chunk, look, limits);
  const auto& minutes = look.request.minutes;
  check_most(minutes, limits.minutes, fmt::format("a wall time of {:.4g} hours", (minutes ? minutes->value : 0) / 60),
             never_starts, fmt::format("at most {:.4g} hours", limits.minutes / 60.0), look);
  check_array(look);
  check_qos(look);
  check_model(look);
}

}  // namespace lockstep::site

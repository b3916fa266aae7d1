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

/// More than `most` of something, where that is known.
void check_most(const std::optional<Asked<long>>& asked, int most, std::string_view things, const Look& look) {
  if (!asked || most == 0 || asked->value <= most) return;
  look.error(asked->line, fmt::format("{} {}", asked->value, things), "the job is refused, or never starts",
             fmt::format("at most {}", most));
}

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

void check_time(const Look& look, const Nodes& limits) {
  const auto& asked = look.request.minutes;
  if (!asked || limits.minutes == 0 || asked->value <= limits.minutes) return;
  look.error(asked->line, fmt::format("a wall time of {:.4g} hours", asked->value / 60),
             "the job is refused, or never starts", fmt::format("at most {:.4g} hours", limits.minutes / 60.0));
}

void check_cores(const Chunk& chunk, const Look& look, const Nodes& limits) {
  const bool is_cpu_node = !chunk.gpus && limits.cpu_cores != 0;
  const int most = is_cpu_node ? limits.cpu_cores : limits.cores;
  if (!chunk.cores || most == 0 || chunk.cores->value <= most) return;
  const std::string what = chunk.cores_of_rank && chunk.ranks
                               ? fmt::format("{} ranks a node with {} cores each are {} cores", chunk.ranks->value,
                                             chunk.cores_of_rank->value, chunk.cores->value)
                               : fmt::format("{} cores of a node", chunk.cores->value);
  look.error(chunk.cores->line, what, fmt::format("a node of {} has {} for jobs", look.site.title, most),
             fmt::format("at most {}", most));
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

/// "a100", "A100" and "nvidia_a100" name one.
bool is_same_gpu(std::string_view asked, std::string_view there) { return contains_ignoring_case(asked, there); }

void check_gpus(const Chunk& chunk, const Look& look, const Nodes& limits) {
  check_most(chunk.gpus, limits.gpus, "GPUs of a node", look);
  const auto& gone = look.site.gone_gpus;
  if (chunk.gpu && !limits.gpu.empty() && !is_same_gpu(chunk.gpu->value, limits.gpu) &&
      std::ranges::find(gone, chunk.gpu->value) == gone.end())
    look.error(chunk.gpu->line, fmt::format("GPUs of type '{}'", chunk.gpu->value), "these nodes have others",
               limits.gpu);
  const long n_nodes = chunk.nodes ? chunk.nodes->value : 1;
  if (chunk.gpus && look.site.most_gpus != 0 && n_nodes * chunk.gpus->value > look.site.most_gpus)
    look.error(chunk.gpus->line, fmt::format("{} GPUs in all", n_nodes * chunk.gpus->value),
               fmt::format("a user of {} may have {}", look.site.title, look.site.most_gpus));
}

void check_memory(const Chunk& chunk, const Look& look, const Nodes& limits) {
  const bool is_cpu_node = !chunk.gpus && limits.cpu_cores != 0;
  const int most = is_cpu_node ? limits.cpu_memory_gb : limits.memory_gb;
  if (!chunk.memory_gb || most == 0 || chunk.memory_gb->value <= most) return;
  look.error(chunk.memory_gb->line, fmt::format("{:.4g} GB of a node's memory", chunk.memory_gb->value),
             fmt::format("it has {}, a little less for jobs", most), "0 of Slurm is all of it");
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
  if (array == nullptr || !array->value || look.site.most_index == 0) return;
  const long greatest = greatest_index(*array->value);
  if (greatest > look.site.most_index)
    look.error(array->line, fmt::format("a job array with the index {}", greatest), "the job is refused",
               fmt::format("at most {}", look.site.most_index));
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
  for (const Chunk& chunk : look.request.chunks) {
    const bool is_cpu_job = !chunk.gpus && limits.cpu_cores != 0;
    check_most(chunk.nodes, is_cpu_job ? limits.cpu_most : limits.most, "nodes", look);
    check_cores(chunk, look, limits);
    check_threads(chunk, look, limits);
    check_gpus(chunk, look, limits);
    check_memory(chunk, look, limits);
  }
  check_time(look, limits);
  check_array(look);
  check_qos(look);
  check_model(look);
}

}  // namespace lockstep::site

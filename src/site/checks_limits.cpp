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
  for (const auto number : {&Nodes::most, &Nodes::cores, &Nodes::memory_gb, &Nodes::gpus})
    if (kind->nodes.*number != 0) nodes.*number = kind->nodes.*number;
  if (!kind->nodes.gpu.empty()) nodes.gpu = kind->nodes.gpu;
  return nodes;
}

/// More than `most`, where that is known. {} in `what` is the value.
template <class Value>
void check_most(const std::optional<Asked<Value>>& asked, int most, std::string_view what, std::string why,
                const Look& look, std::string fix = "") {
  if (asked && most != 0 && asked->value > most)
    look.error(asked->line, fmt::format(fmt::runtime(what), asked->value), std::move(why),
               fix.empty() ? fmt::format("at most {}", most) : std::move(fix));
}
constexpr const char* never_starts = "the job is refused or never starts";

std::string hours(double minutes) { return fmt::format("{:.4g} hour{}", minutes / 60, minutes == 60 ? "" : "s"); }

void check_partition(const Look& look, std::string_view name, int line) {
  if (look.site.partitions.empty() || find_by(look.site.partitions, name, &Partition::name) != nullptr) return;
  if (has_word(look.site.not_here, name))
    return look.error(line, fmt::format("{} has no '{}'", look.site.title, name), "it belongs to another cluster");
  std::vector<std::string> names;
  for (const Partition& partition : look.site.partitions) names.push_back(partition.name);
  const std::string meant = did_you_mean(name, names);
  look.add(meant.empty() ? Severity::note : Severity::error, line,
           fmt::format("{} documents no partition or queue '{}'", look.site.title, name), "",
           meant.empty() ? fmt::format("one of {}", core::join(names)) : meant);
}

void check_threads(const Chunk& chunk, const Look& look, const Nodes& limits) {
  const Variable* const last = find_last_by(look.script.variables, "OMP_NUM_THREADS", &Variable::name);
  const long threads = last != nullptr ? count_in(last->value).value_or(0) : 0;
  if (threads == 0) return;
  const long ranks = value_or(chunk.ranks, 1L);
  const long of_rank = value_or(chunk.cores_of_rank, 0L);
  if (of_rank != 0 && threads > of_rank)
    look.warning(last->line, fmt::format("OMP_NUM_THREADS={} with {} a rank", threads, counted(of_rank, "core")),
                 "threads that share a core wait for each other", fmt::format("OMP_NUM_THREADS={}", of_rank));
  else if (limits.cores != 0 && ranks * threads > limits.cores && chunk.gpus)
    look.warning(last->line, fmt::format("{} a node with OMP_NUM_THREADS={}", counted(ranks, "rank"), threads),
                 fmt::format("a node has {} cores", limits.cores), "use fewer threads");
}

void check_chunk(const Chunk& chunk, const Look& look, const Nodes& limits) {
  const bool is_cpu_job = !chunk.gpus && limits.cpu_cores != 0;
  const std::string& title = look.site.title;
  check_most(chunk.nodes, is_cpu_job ? limits.cpu_most : limits.most, "{} nodes", never_starts, look);
  const int cores = is_cpu_job ? limits.cpu_cores : limits.cores;
  check_most(chunk.cores, cores,
             chunk.cores_of_rank && chunk.ranks ? fmt::format("{} ranks a node with {} cores each are {{}} cores",
                                                              chunk.ranks->value, chunk.cores_of_rank->value)
                                                : "{} cores of a node",
             fmt::format("a node of {} has {} for jobs", title, cores), look);
  const int memory = is_cpu_job ? limits.cpu_memory_gb : limits.memory_gb;
  check_most(chunk.memory_gb, memory, "{:.4g} GB of a node's memory",
             fmt::format("it has {} GB, and a little less for jobs", memory), look, "with Slurm, 0 asks for all of it");
  check_most(chunk.gpus, limits.gpus, "{} GPUs of a node", never_starts, look);
  auto all_gpus = chunk.gpus;
  if (all_gpus && chunk.nodes) all_gpus->value *= chunk.nodes->value;
  check_most(all_gpus, look.site.most_gpus, "{} GPUs in all",
             fmt::format("a user of {} may have {}", title, look.site.most_gpus), look);
  const bool is_other = chunk.gpu && !contains_ignoring_case(chunk.gpu->value, limits.gpu);  // "nvidia_A100" is a100
  if (is_other && !has_word(look.site.gone_gpus, chunk.gpu->value))
    look.error(chunk.gpu->line, fmt::format("GPUs of type '{}'", chunk.gpu->value), "these nodes have another type",
               limits.gpu);
  if (chunk.cores && chunk.ranks && !look.request.is_exclusive && chunk.ranks->value > chunk.cores->value)
    look.warning(chunk.ranks->line,
                 fmt::format("{} ranks on {} of a node", chunk.ranks->value, counted(chunk.cores->value, "core")),
                 "ranks that share a core wait for each other", fmt::format("ncpus={}", chunk.ranks->value));
  check_threads(chunk, look, limits);
}

void check_array(const Look& look) {
  const Flag* const array = directive(look.script, "array");
  const auto greatest = array != nullptr ? greatest_index(array->text()) : std::nullopt;
  if (greatest)
    check_most(std::optional{Asked<long>{*greatest, array->line}}, look.site.most_index,
               "a job array with the index {}", refused, look);
}

void check_qos(const Look& look) {
  const Flag* const qos = directive(look.script, "qos");
  const bool wants_gpus = value_or(look.first_chunk().gpus, 0L) > 0;
  const std::string& end = look.site.cpu_qos_ends;
  if (qos == nullptr || end.empty() || !qos->text().ends_with(end) || !wants_gpus) return;
  look.error(qos->line, fmt::format("GPUs with the QOS '{}'", qos->text()),
             fmt::format("a QOS that ends in {} has none on {}", end, look.site.title),
             std::string{qos->text().substr(0, qos->text().size() - end.size())});
}

/// GPUs of no model, or nodes of several kinds.
void check_model(const Look& look) {
  const Chunk chunk = look.first_chunk();
  if (look.site.needs_company.empty() || !chunk.gpus) return;
  const auto features = features_of(look.request.constraint);
  if (features.empty() && !chunk.gpu)
    look.warning(chunk.gpus->line, "GPUs of no model", fmt::format("{} then gives the oldest ones", look.site.title),
                 "--constraint=\"a100&4gpus\"");
  if (features.size() != 1 || !has_word(look.site.needs_company, *features.begin())) return;
  look.warning(directive(look.script, "constraint")->line, fmt::format("--constraint={} alone", *features.begin()),
               "it mixes nodes with different numbers of GPUs and different networks",
               *features.begin() == "v100" ? "--constraint=\"v100&gpu_ai\"" : "--constraint=\"a100&4gpus\"");
}

}  // namespace

void check_limits(const Look& look) {
  const Partition* partition = nullptr;
  if (const auto& asked = look.request.partition) {
    for (const std::string_view name : split(asked->value, ',')) check_partition(look, name, asked->line);
    partition = find_by(look.site.partitions, asked->value, &Partition::name);
  }
  const Nodes limits = limits_of(look, partition);
  for (const Chunk& chunk : look.request.chunks) check_chunk(chunk, look, limits);
  if (const auto& time = look.request.minutes; time && limits.minutes != 0 && time->value > limits.minutes)
    look.error(time->line, "a wall time of " + hours(time->value), never_starts, "at most " + hours(limits.minutes));
  check_array(look);
  check_qos(look);
  check_model(look);
}

}  // namespace lockstep::site

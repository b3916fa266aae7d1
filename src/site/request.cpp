#include "site/request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "site/text.hpp"

namespace lockstep::site {
namespace {

/// What `read` makes of the value of a flag, with its line.
template <class Read>
auto asked_by(const Flag* flag, Read read) {
  using Value = typename decltype(read(std::string_view{}))::value_type;
  auto value = flag != nullptr && flag->value ? read(std::string_view{*flag->value}) : std::nullopt;
  return value ? std::optional{Asked<Value>{std::move(*value), flag->line}} : std::nullopt;
}

std::optional<long> positive(std::string_view text) {
  return count_in(text).value_or(0) > 0 ? count_in(text) : std::nullopt;
}
std::optional<std::string> any_text(std::string_view text) { return std::string{text}; }

std::optional<Asked<long>> number_of(const JobScript& script, std::string_view name) {
  return asked_by(directive(script, name), positive);
}

long divided(long all, const Asked<long>& parts) { return (all + parts.value - 1) / parts.value; }

/// Reads the GPUs of a node; the last of these options that is given counts.
void read_slurm_gpus(const JobScript& script, Chunk& chunk) {
  for (const std::string_view name : {"gres", "gpus-per-task", "gpus", "gpus-per-node"}) {
    const Flag* const flag = directive(script, name);
    if (flag == nullptr || (name != "gres" && !expected_of("gpus", "", flag->text()).empty())) continue;
    for (const Gres& gres : read_gres(fmt::format("{}{}", name == "gres" ? "" : "gpu:", flag->text()))) {
      if (gres.name != "gpu") continue;
      if (gres.count) chunk.gpus = Asked<long>{*gres.count, flag->line};
      if (!gres.type.empty()) chunk.gpu = Asked<std::string>{gres.type, flag->line};
    }
    if (name == "gpus-per-task" && chunk.gpus && chunk.ranks) chunk.gpus->value *= chunk.ranks->value;
    if (name == "gpus" && chunk.gpus && chunk.nodes) chunk.gpus->value = divided(chunk.gpus->value, *chunk.nodes);
  }
}

Chunk slurm_chunk(const JobScript& script) {
  Chunk chunk;
  chunk.nodes = asked_by(directive(script, "nodes"), [](std::string_view text) {
    return positive(text.substr(text.find('-') + 1));  // the larger one of "2-4"; npos + 1 is 0
  });
  chunk.ranks = number_of(script, "ntasks-per-node");
  if (!chunk.ranks) chunk.ranks = number_of(script, "tasks-per-node");
  if (const auto all = number_of(script, "ntasks"); all && !chunk.ranks && chunk.nodes)
    chunk.ranks = Asked<long>{divided(all->value, *chunk.nodes), all->line};
  else if (all && chunk.ranks && !chunk.nodes)
    chunk.nodes = Asked<long>{divided(all->value, *chunk.ranks), all->line};
  chunk.cores_of_rank = number_of(script, "cpus-per-task");
  chunk.cores = chunk.cores_of_rank ? chunk.cores_of_rank : chunk.ranks;
  if (chunk.cores_of_rank && chunk.ranks) chunk.cores->value *= chunk.ranks->value;
  read_slurm_gpus(script, chunk);
  chunk.memory_gb = asked_by(directive(script, "mem"), slurm_gb);
  return chunk;
}

/// "2:ncpus=64:mpiprocs=4:ngpus=4".
Chunk pbs_chunk(std::string_view text, int line) {
  Chunk chunk;
  chunk.nodes = Asked<long>{1, line};
  for (const Resource& part : read_resources(text, ':', line)) {
    const auto number = count_in(part.is_alone ? part.name : part.value);
    const auto asked = number ? std::optional{Asked<long>{*number, line}} : std::nullopt;
    if (part.is_alone && asked) chunk.nodes = asked;
    if (part.name == "ncpus") chunk.cores = asked;
    if (part.name == "mpiprocs") chunk.ranks = asked;
    if (part.name == "ngpus") chunk.gpus = asked;
    if (part.name == "gpu_type") chunk.gpu = Asked<std::string>{part.value, line};
    if (const auto size = pbs_gb(part.value); part.name == "mem" && size) chunk.memory_gb = Asked<double>{*size, line};
  }
  return chunk;
}

/// The ranks of a job: by --ntasks of Slurm, or the sum over `chunks`.
std::optional<Asked<long>> ranks_of_job(const JobScript& script, const std::vector<Chunk>& chunks) {
  if (script.system == BatchSystem::slurm) {
    if (const auto all = number_of(script, "ntasks")) return all;
    const Flag* const nodes = directive(script, "nodes");
    if (nodes != nullptr && !count_in(nodes->text())) return std::nullopt;  // "2-4"
  }
  Asked<long> all;
  for (const Chunk& chunk : chunks) {
    if (!chunk.ranks || (chunk.nodes && chunk.nodes->value > 1'000'000) || chunk.ranks->value > 1'000'000)
      return std::nullopt;
    all.value += value_or(chunk.nodes, 1L) * chunk.ranks->value;
    all.line = chunk.ranks->line;
  }
  return chunks.empty() ? std::nullopt : std::optional{all};
}

void read_pbs(const JobScript& script, Request& request) {
  const auto resources = pbs_resources(script);
  const auto last = [&resources](std::string_view name) { return find_last_by(resources, name, &Resource::name); };
  if (const Resource* const select = last("select"))
    for (const std::string_view part : split(select->value, '+'))
      request.chunks.push_back(pbs_chunk(part, select->line));
  if (const Resource* const time = last("walltime"))
    if (const auto minutes = pbs_minutes(time->value)) request.minutes = Asked<double>{*minutes, time->line};
  if (const Resource* const place = last("place"))
    request.is_exclusive = place->value.find("excl") != std::string::npos;
  request.partition = asked_by(directive(script, "q"), any_text);
}

}  // namespace

std::vector<Resource> read_resources(std::string_view text, char separator, int line) {
  std::vector<Resource> resources;
  for (const std::string_view part : split(text, separator)) {
    const std::size_t equals = std::min(part.find('='), part.size());
    const std::string_view value = part.substr(std::min(equals + 1, part.size()));
    resources.push_back(
        {std::string{trim(part.substr(0, equals))}, std::string{trim(value)}, line, equals == part.size()});
  }
  return resources;
}

std::vector<Resource> pbs_resources(const JobScript& script) {
  std::vector<Resource> all;
  for (const Flag& flag : script.directives)
    if (flag.name == "l" && flag.value)
      std::ranges::move(read_resources(*flag.value, ',', flag.line), std::back_inserter(all));
  return all;
}

Request read_request(const JobScript& script) {
  Request request;
  if (script.system == BatchSystem::pbs) {
    read_pbs(script, request);
    request.ranks = ranks_of_job(script, request.chunks);
    return request;
  }
  if (!script.is_heterogeneous) request.chunks.push_back(slurm_chunk(script));
  request.ranks = ranks_of_job(script, request.chunks);
  request.is_exclusive = directive(script, "exclusive") != nullptr;
  request.minutes = asked_by(directive(script, "time"), slurm_minutes);
  request.partition = asked_by(directive(script, "partition"), any_text);
  if (const Flag* const constraint = directive(script, "constraint")) request.constraint = constraint->text();
  return request;
}

}  // namespace lockstep::site

#include "site/request.hpp"

#include <algorithm>

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

/// "4" and "a100:4".
void read_gpus(const Flag& flag, Chunk& chunk) {
  const std::string_view text = flag.value ? std::string_view{*flag.value} : std::string_view{};
  const std::size_t colon = text.rfind(':');
  if (const auto count = count_in(text.substr(colon + 1)))  // npos + 1 is 0
    chunk.gpus = Asked<long>{*count, flag.line};
  if (colon != text.npos) chunk.gpu = Asked<std::string>{std::string{text.substr(0, colon)}, flag.line};
}

void read_slurm_gpus(const JobScript& script, Chunk& chunk) {
  if (const Flag* const flag = directive(script, "gres")) {
    for (const Gres& gres : read_gres(flag->value.value_or(""))) {
      if (gres.name != "gpu") continue;
      if (gres.count) chunk.gpus = Asked<long>{*gres.count, flag->line};
      if (!gres.type.empty()) chunk.gpu = Asked<std::string>{gres.type, flag->line};
    }
  }
  if (const Flag* const flag = directive(script, "gpus-per-task")) {
    read_gpus(*flag, chunk);
    if (chunk.gpus && chunk.ranks) chunk.gpus->value *= chunk.ranks->value;
  }
  if (const Flag* const flag = directive(script, "gpus")) {
    read_gpus(*flag, chunk);
    const long n_nodes = chunk.nodes ? chunk.nodes->value : 1;
    if (chunk.gpus) chunk.gpus->value = (chunk.gpus->value + n_nodes - 1) / n_nodes;
  }
  if (const Flag* const flag = directive(script, "gpus-per-node")) read_gpus(*flag, chunk);
}

Chunk slurm_chunk(const JobScript& script) {
  Chunk chunk;
  chunk.nodes = asked_by(directive(script, "nodes"), [](std::string_view text) {
    return positive(text.substr(text.find('-') + 1));  // the larger one of "2-4"; npos + 1 is 0
  });
  chunk.ranks = number_of(script, "ntasks-per-node");
  if (!chunk.ranks) chunk.ranks = number_of(script, "tasks-per-node");
  if (const auto all = number_of(script, "ntasks"); all && !chunk.ranks && chunk.nodes)
    chunk.ranks = Asked<long>{(all->value + chunk.nodes->value - 1) / chunk.nodes->value, all->line};
  if (const auto all = number_of(script, "ntasks"); all && chunk.ranks && !chunk.nodes)
    chunk.nodes = Asked<long>{(all->value + chunk.ranks->value - 1) / chunk.ranks->value, all->line};
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
  for (const std::string_view part : split(text, ':')) {
    const std::size_t equals = part.find('=');
    const std::string_view name = part.substr(0, equals), value = part.substr(equals + 1);  // npos + 1 is 0
    const auto number = count_in(value);
    const auto asked = number ? std::optional{Asked<long>{*number, line}} : std::nullopt;
    if (equals == part.npos && asked) chunk.nodes = asked;
    if (name == "ncpus") chunk.cores = asked;
    if (name == "mpiprocs") chunk.ranks = asked;
    if (name == "ngpus") chunk.gpus = asked;
    if (name == "gpu_type") chunk.gpu = Asked<std::string>{std::string{value}, line};
    if (const auto size = pbs_gb(value); name == "mem" && size) chunk.memory_gb = Asked<double>{*size, line};
  }
  return chunk;
}

/// Of a job of Slurm, or of all chunks of one of PBS, which are `chunks`.
std::optional<Asked<long>> ranks_of_job(const JobScript& script, const std::vector<Chunk>& chunks) {
  if (script.system == BatchSystem::slurm) {
    if (const auto all = number_of(script, "ntasks")) return all;
    const Flag* const nodes = directive(script, "nodes");
    if (nodes != nullptr && nodes->value && !count_in(*nodes->value)) return std::nullopt;  // "2-4"
  }
  Asked<long> all;
  for (const Chunk& chunk : chunks) {
    if (!chunk.ranks || (chunk.nodes && chunk.nodes->value > 1'000'000) || chunk.ranks->value > 1'000'000)
      return std::nullopt;
    all.value += (chunk.nodes ? chunk.nodes->value : 1) * chunk.ranks->value;
    all.line = chunk.ranks->line;
  }
  return chunks.empty() ? std::nullopt : std::optional{all};
}

void read_pbs(const JobScript& script, Request& request) {
  const auto resources = pbs_resources(script);
  if (const Resource* const select = last_resource(resources, "select"))
    for (const std::string_view part : split(select->value, '+'))
      request.chunks.push_back(pbs_chunk(part, select->line));
  if (const Resource* const time = last_resource(resources, "walltime"))
    if (const auto minutes = pbs_minutes(time->value)) request.minutes = Asked<double>{*minutes, time->line};
  request.partition = asked_by(directive(script, "q"), any_text);
}

}  // namespace

std::vector<Resource> pbs_resources(const JobScript& script) {
  std::vector<Resource> resources;
  for (const Flag& flag : script.directives) {
    if (flag.name != "l" || !flag.value) continue;
    for (const std::string_view part : split(*flag.value, ',')) {
      const std::size_t equals = std::min(part.find('='), part.size());
      const std::string_view value = part.substr(std::min(equals + 1, part.size()));
      resources.push_back({std::string{trim(part.substr(0, equals))}, std::string{trim(value)}, flag.line});
    }
  }
  return resources;
}

const Resource* last_resource(const std::vector<Resource>& resources, std::string_view name) {
  const auto found =
      std::find_if(resources.rbegin(), resources.rend(), [name](const Resource& one) { return one.name == name; });
  return found == resources.rend() ? nullptr : &*found;
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
  if (const Flag* const constraint = directive(script, "constraint"))
    request.constraint = constraint->value.value_or("");
  return request;
}

}  // namespace lockstep::site

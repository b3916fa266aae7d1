#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "site/checks.hpp"
#include "site/text.hpp"

namespace lockstep::site {
namespace {

bool has_several_nodes(const Look& look) { return look.n_nodes().value_or(1) > 1; }

long ranks_of_node(const Launch& launch, const Look& look) {
  const std::initializer_list<std::string_view> of_node{"ntasks-per-node", "ppn", "npernode"};
  if (flag_of(launch, of_node) != nullptr) return count_of(launch, of_node).value_or(1);
  const bool is_by_header = launch.launcher == Launcher::srun && flag_of(launch, {"ntasks", "n"}) == nullptr;
  return is_by_header ? value_or(look.first_chunk().ranks, 1L) : 1;
}

/// The number of nodes, and the first of them, as a script may ask for them.
std::string nodes_of_job(const Look& look) {
  return look.is_pbs() ? "$(sort -u \"$PBS_NODEFILE\" | wc -l)" : "\"$SLURM_NNODES\"";
}
std::string first_node(const Look& look) {
  return look.is_pbs() ? "$(head -n 1 \"$PBS_NODEFILE\")"
                       : "$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)";
}

/// Each rank of srun starts an mpirun of its own.
void check_nested(const Launch& outer, const Launch& inner, const Look& look) {
  const auto ranks = ranks_of(outer, look);
  if (!is_mpi_launcher(outer.launcher) || !is_mpi_launcher(inner.launcher) || ranks == 1) return;
  look.add(ranks ? Severity::error : Severity::warning, inner.line,
           fmt::format("{} starts {} once for each of its ranks", name(outer.launcher), name(inner.launcher)),
           "each of them starts all ranks again, or fails within the step of the other",
           fmt::format("use either {} or {}", name(outer.launcher), name(inner.launcher)));
}

/// [N-credit]: torchrun --nproc-per-node=4 under mpiexec -ppn 4 starts 16 a node.
bool check_square(const Launch& outer, const Launch& torch, const Look& look) {
  const Flag* const flag = flag_of(torch, {"nproc_per_node", "num_processes", "num_gpus"});
  const long outer_ranks = ranks_of_node(outer, look);
  if (!is_mpi_launcher(outer.launcher) || flag == nullptr || outer_ranks < 2 || flag->value == "1") return false;
  look.warning(torch.line,
               fmt::format("{} starts {} {} times a node, and each starts {} processes", name(outer.launcher),
                           name(torch.launcher), outer_ranks, flag->value.value_or("several")),
               "", fmt::format("one rank a node with {0}, or no {0}", name(torch.launcher)));
  return true;
}

/// What keeps nodes from being one training, by a row of [nodes], and what comes of it; empty if nothing does.
std::pair<std::string, const char*> obstacle(const Launch& torch, const Rows::value_type& row, bool is_alone) {
  const auto has = [&torch](std::string_view option) { return flag_of(torch, {option}) != nullptr; };
  const bool is_of_each = is_alone || !row[3].empty() || has("no_ssh");
  if (has(row[5])) return {is_of_each ? "" : "behind a launcher", "each node starts the ranks of all"};
  if (has("standalone")) return {"with --standalone", "each node trains by itself"};
  const std::string_view needed = row[row[3].empty() ? 5 : 2];
  const char* const why = is_alone ? "the other nodes are idle" : "each node trains by itself";
  if (!has(needed)) return {fmt::format("without --{}", needed), why};
  const Flag* const backend = flag_of(torch, {"rdzv_backend"});
  const bool is_static = backend == nullptr || backend->text() == "static";
  if (!has("rdzv_endpoint") && (!has(row[3]) || (!is_static && torch.launcher != Launcher::accelerate)))
    return {"without an address where they meet", "each node waits for the others at its own address"};
  if (is_static && !has(row[4])) return {fmt::format("without --{}", row[4]), "each node takes itself for the first"};
  return {};
}

void check_torch_of_nodes(const Launch& torch, const Launch* outer, const Look& look) {
  const std::string_view own = name(torch.launcher);
  const Rows::value_type& row = *option_row("nodes", own);
  const bool is_square = outer != nullptr && check_square(*outer, torch, look);
  const auto n_nodes = look.n_nodes();
  const auto asked = count_of(torch, {row[2]});
  const Flag* const processes = flag_of(torch, {"nproc_per_node", "num_gpus"});
  const long gpus = value_or(look.first_chunk().gpus, 0L);
  if (processes != nullptr && gpus > 0 && whole_number(processes->text()).value_or(0) > gpus)
    look.warning(
        torch.line, fmt::format("{}={} with {} a node", processes->typed, processes->text(), counted(gpus, "GPU")),
        "processes without a GPU of their own fail or share one", fmt::format("{}={}", processes->typed, gpus));
  const bool is_of_fewer = outer != nullptr && flag_of(*outer, {"nodes", "n", "ntasks", "host"}) != nullptr;
  if (!n_nodes || is_square || is_of_fewer || torch.is_in_braces) return;
  if (asked && *asked != *n_nodes)
    return look.error(torch.line, fmt::format("--{}={} in a job of {}", row[2], *asked, counted(*n_nodes, "node")),
                      *asked > *n_nodes ? "it asks for nodes that the job does not have" : "the other nodes are idle",
                      fmt::format("--{}={}", row[2], nodes_of_job(look)));
  const bool may_have_more = !torch.program.empty() && is_expansion(torch.program.front());
  if (*n_nodes < 2 || may_have_more) return;
  if (outer == nullptr && !row[3].empty() && flag_of(torch, {row[5]}) == nullptr)
    return look.error(torch.line, fmt::format("{} without a launcher in a job of {} nodes", own, *n_nodes),
                      "it runs on the first node alone",
                      look.is_pbs() ? "mpiexec with one rank a node before it" : "srun --ntasks-per-node=1 before it");
  const auto is_of_torch = [](const Variable& variable) { return variable.name.starts_with("PET_"); };
  const auto [what, why] = obstacle(torch, row, outer == nullptr);
  if (!what.empty() && std::ranges::none_of(look.script.variables, is_of_torch))
    look.add(severity_named(row[1]), torch.line, fmt::format("{} on {} nodes {}", own, *n_nodes, what), why,
             fmt::format(fmt::runtime(row[6]), nodes_of_job(look)));
}

bool is_local(std::string_view address) {
  return address.starts_with("127.") || is_one_of(address, "localhost ::1 [::1] lo 0.0.0.0");
}

/// Where ranks meet, and the networks that they use: those of one node lead nowhere from another.
void check_rendezvous(const Look& look) {
  if (!has_several_nodes(look)) return;
  const auto check = [&](int line, std::string_view name, std::string_view value, std::string_view address) {
    if (is_local(address))
      look.error(line, fmt::format("{}={} in a job of {} nodes", name, value, look.n_nodes().value_or(0)),
                 "it is a different place on each node: ranks of different nodes do not meet",
                 value == "lo" ? "use the network between nodes, or remove it" : first_node(look));
  };
  for (const Variable& variable : look.script.variables)
    if (option_row("places", variable.name) != nullptr)
      check(variable.line, variable.name, variable.value, variable.value);
  for (const Launch& launch : look.script.launches)
    for (const std::string_view name : {"master_addr", "rdzv_endpoint", "main_process_ip"})
      if (const Flag* const flag = flag_of(launch, {name}); flag != nullptr && is_torch(launch.launcher))
        check(launch.line, flag->typed, flag->text(), flag->text().substr(0, flag->text().find(':')));
}

/// Whether ranks are started whose program itself uses one GPU, as far as can be told.
bool starts_plain_ranks(const Look& look) {
  bool is_there = false;
  for (const Launch& launch : look.script.launches) {
    if (is_torch(launch.launcher)) return false;
    if (!is_mpi_launcher(launch.launcher) || launch.program.empty() || is_small_command(launch)) continue;
    if (flag_of(launch, {"ntasks", "ntasks-per-node", "ntasks-per-gpu", "n", "np", "ppn", "npernode"}) != nullptr)
      return false;
    for (const std::string_view starter : {"bash", "sh", "accelerate", "deepspeed", "ray", "colossalai"})
      if (runs(launch.program, starter)) return false;
    if (launch.program[0].ends_with(".sh") || look.script.known.leaves_unknown(std::span{launch.program}.first(1)))
      return false;
    is_there = true;
  }
  return is_there;
}

void check_gpus_of_ranks(const Look& look) {
  for (const Chunk& chunk : look.request.chunks) {
    if (!chunk.gpus || chunk.gpus->value == 0 || (!chunk.ranks && look.is_pbs())) continue;
    const long ranks = value_or(chunk.ranks, 1L), gpus = chunk.gpus->value;
    const bool is_idle = ranks == 1 && gpus > 1 && has_several_nodes(look) && starts_plain_ranks(look);
    if (ranks == gpus || (!chunk.ranks && !is_idle)) continue;
    look.add(is_idle ? Severity::warning : Severity::note, chunk.ranks ? chunk.ranks->line : chunk.gpus->line,
             fmt::format("{} and {} a node", counted(ranks, "rank"), counted(gpus, "GPU")),
             is_idle ? fmt::format("unless the program uses several, {} of them are idle", gpus - 1)
                     : "the numbers are equal where each rank uses one GPU",
             is_idle ? fmt::format("--ntasks-per-node={}, or torchrun --nproc_per_node={}", gpus, gpus) : "");
  }
}

bool is_of_node(std::string_view path) {
  return starts_with_any(
      path, split_words("$TMPDIR ${TMPDIR $SLURM_TMPDIR ${SLURM_T /tmp /dev/shm /local_disk /localscratch"));
}

/// "cp" of cp -r a $TMPDIR, "tar" of tar -xf a -C /tmp; empty if nothing is brought to a node's own disk.
std::string_view staging(std::span<const std::string> words) {
  if (words.size() < 2 || !is_one_of(words[0], "cp mv rsync tar unzip")) return {};
  const auto folder = std::ranges::find(words, words[0] == "unzip" ? "-d" : "-C");
  const bool has_folder = folder != words.end() && folder + 1 != words.end();
  return is_of_node(has_folder ? *(folder + 1) : words.back()) ? std::string_view{words[0]} : std::string_view{};
}

void check_staging(const Look& look) {
  for (const Launch& launch : look.script.launches) {
    const std::string_view what = staging(launch.program);
    const long ranks = ranks_of_node(launch, look);
    if (!what.empty() && launch.launcher == Launcher::srun && ranks > 1)
      look.warning(launch.line, fmt::format("{} runs {} times on each node at once", what, ranks),
                   "ranks write the same files", "srun --ntasks-per-node=1, with --ntasks as many as nodes");
  }
  if (!has_several_nodes(look)) return;
  for (const Command& command : look.script.commands)
    if (const std::string_view what = staging(command.words); !what.empty() && !command.is_in_braces)
      look.warning(command.line, fmt::format("{} to '{}' in a job of several nodes", what, command.words.back()),
                   "the script runs on the first node: the other nodes do not get the files",
                   "put srun --ntasks-per-node=1 before it, or use sbcast");
}

/// Finds ssh $node, with the nodes of the job from the batch system, or from a variable that has them or reads them.
void check_ssh(const Look& look) {
  std::set<std::string_view> of_nodes{"SLURM_JOB_NODELIST", "SLURM_NODELIST", "PBS_NODEFILE"};  // variables
  const auto has_nodes = [&of_nodes](const std::string& text) {
    const Command command{.words = {text}};
    const auto is_of_nodes = [&of_nodes](const Read& read) { return of_nodes.contains(read.name); };
    return text.find("scontrol show hostname") != text.npos || std::ranges::any_of(reads_of(command), is_of_nodes);
  };
  const auto is_host = [&has_nodes](const std::string& word) {  // and no command for it
    return has_nodes(word) && (word.starts_with("$(") || word.find(' ') == word.npos);
  };
  for (const Variable& variable : look.script.variables)
    if (has_nodes(variable.value)) of_nodes.insert(variable.name);
  std::string_view of_loop;  // done < INPUT
  for (auto at = look.script.commands.rbegin(); at != look.script.commands.rend(); ++at) {
    const Command& command = *at;
    const auto words = unwrapped(command.words);
    if (command.words[0] == "done" && !command.input.empty()) of_loop = command.input;
    if (words.empty() || !is_one_of(words[0], "read mapfile readarray")) continue;
    const bool is_of_loop = command.is_loop && command.input.empty();
    if (has_nodes(is_of_loop ? std::string{of_loop} : command.input)) of_nodes.insert(words.begin() + 1, words.end());
  }
  for (const Command& command : look.script.commands) {
    const auto words = unwrapped(command.words);
    if (words.empty()) continue;
    if (words[0] == "for" && words.size() > 2 && std::ranges::any_of(words, has_nodes)) of_nodes.insert(words[1]);
    const bool is_for_each = words[0] == "xargs" && runs(words, "ssh") && has_nodes(command.input);
    if (is_for_each || (is_one_of(file_name(words[0]), "ssh rsh pdsh clush") && std::ranges::any_of(words, is_host)))
      look.warning(command.line, fmt::format("{} to nodes of the job", words[0]),
                   "what it starts is not of the job's step: it lacks its environment and limits, and may outlive it",
                   look.is_pbs() ? "pbsdsh, or mpiexec with one rank a node"
                                 : "srun --ntasks-per-node=1; for one node srun --nodelist=NODE --ntasks=1");
  }
}

/// [H-shs]: it makes a failure of the plugin fatal, but needs the network within a node as well.
void check_network_of_node(const Look& look) {
  if (look.request.chunks.size() != 1 || look.n_nodes() != 1) return;
  for (const Variable& variable : look.script.variables)
    if (variable.name == "NCCL_NET" && variable.value == "AWS Libfabric")
      look.note(variable.line, "NCCL_NET=\"AWS Libfabric\" in a job of one node", "it is for jobs of several nodes");
}

}  // namespace

void check_nodes(const Look& look) {
  const Launch* outer = nullptr;
  for (const Launch& launch : look.script.launches) {
    if (!launch.is_within) outer = nullptr;
    if (outer != nullptr) check_nested(*outer, launch, look);
    if (is_torch(launch.launcher) && launch.variable.empty()) check_torch_of_nodes(launch, outer, look);
    outer = &launch;
  }
  check_rendezvous(look);
  check_gpus_of_ranks(look);
  check_staging(look);
  check_ssh(look);
  check_network_of_node(look);
}

}  // namespace lockstep::site

#include "comm/registry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <string_view>

#include "comm/algorithms/algorithms.hpp"
#include "comm/transport.hpp"
#include "core/error.hpp"

namespace lockstep::comm {
namespace {

constexpr std::string_view of_the_host = "as the host's algorithm";
constexpr std::string_view of_the_library = "chosen by the library";

constexpr Algorithm on_devices(std::string_view name, std::string_view summary, Needs needs, MakeGroup group) {
  return {.name = name,
          .summary = summary,
          .steps = of_the_host,
          .bytes = of_the_host,
          .all_reduce = {},
          .reduce_scatter = {},
          .all_gather = {},
          .needs = needs,
          .group = group};
}

// A name with a part after a colon is a variant.
constexpr Algorithm nccl_row(std::string_view name, std::string_view summary, bool only_all_reduce = false) {
  Algorithm row = on_devices(name, summary, Needs::own_devices, nccl::make);
  row.steps = row.bytes = of_the_library;
  row.why_not = nccl::why_not;
  row.only_all_reduce = only_all_reduce;
  row.is_variant = name.find(':') != std::string_view::npos;
  return row;
}

constexpr Algorithm by_switches(Algorithm row, WhyNot why_not) {
  row.needs = Needs::switches;
  row.why_not = why_not;
  return row;
}

constexpr Algorithm staged_row() {
  constexpr auto summary =
      "GPUs: copies to pinned memory, runs the algorithm that the host would choose, copies back; any MPI";
  Algorithm row = on_devices("staged", summary, Needs::devices, staged::make);
  row.keeps_order = true;
  return row;
}

constexpr Algorithm mpi_on_devices() {
  Algorithm row = on_devices("mpi:device", "GPUs: the MPI library's own collectives on GPU memory, if it is GPU-aware",
                             Needs::mpi_processes, mpi_native::make_for_devices);
  row.steps = row.bytes = of_the_library;
  row.why_not = mpi_native::why_not_for_devices;
  row.is_variant = true;  // an MPI's claim need not be true, and a wrong one would end the run
  return row;
}

constexpr std::array table{
    Algorithm{.name = "mpi",
              .summary = "the MPI library's own collective; several calls above 2^30 elements",
              .steps = of_the_library,
              .bytes = of_the_library,
              .all_reduce = {mpi_native::make, nullptr},
              .reduce_scatter = {mpi_native::make, nullptr},
              .all_gather = {mpi_native::make, nullptr},
              .needs = Needs::mpi_processes},
    Algorithm{.name = "ring",
              .summary = "parts travel round a ring, in segments; least traffic, many steps",
              .steps = "2(P-1)",
              .bytes = "2(P-1)/P S",
              .all_reduce = {make_scheduled<ring::all_reduce>, ring::cost},
              .reduce_scatter = {make_scheduled<ring::reduce_scatter>, ring::cost},
              .all_gather = {make_scheduled<ring::all_gather>, ring::cost}},
    Algorithm{.name = "recursive_doubling",
              .summary = "pairs exchange whole vectors; fewest steps, for short vectors",
              .steps = "log2 P (+2 unless P is a power of two)",
              .bytes = "S log2 P",
              .all_reduce = {make_scheduled<recursive_doubling::all_reduce>, recursive_doubling::cost},
              .reduce_scatter = {},
              .all_gather = {},
              .keeps_order = true},
    Algorithm{.name = "rabenseifner",
              .summary = "recursive halving, then doubling; least traffic in few steps",
              .steps = "2 log2 P (+2 unless P is a power of two)",
              .bytes = "2(P-1)/P S",
              .all_reduce = {make_scheduled<rabenseifner::all_reduce>, rabenseifner::cost},
              .reduce_scatter = {},
              .all_gather = {}},
    Algorithm{.name = "recursive_halving",
              .summary = "pairs exchange halves of what they both have; fewest steps with least traffic",
              .steps = "log2 P (+2 unless P is a power of two)",
              .bytes = "(P-1)/P S",
              .all_reduce = {},
              .reduce_scatter = {make_scheduled<recursive_halving::reduce_scatter>, recursive_halving::cost},
              .all_gather = {make_scheduled<recursive_halving::all_gather>, recursive_halving::cost},
              .keeps_order = true},
    Algorithm{.name = "tree",
              .summary = "binomial tree to rank 0 and back, in segments",
              .steps = "2 ceil(log2 P)",
              .bytes = "2(P-1)/P S on average",
              .all_reduce = {make_scheduled<tree::all_reduce>, tree::cost},
              .reduce_scatter = {},
              .all_gather = {}},
    Algorithm{.name = "shm",
              .summary = "through memory shared by the ranks of one node; no messages",
              .steps = "1 up to 32 KiB/(P-1), else 2 per chunk",
              .bytes = "0",
              .all_reduce = {shm::make, shm::cost},
              .reduce_scatter = {shm::make, shm::cost},
              .all_gather = {shm::make, shm::cost},
              .needs = Needs::one_node},
    Algorithm{.name = "hierarchical",
              .summary = "shm on each node, one all-reduce per slice between nodes, all slices at once",
              .steps = "2 + those between the nodes",
              .bytes = "2(N-1)/N S/R for N nodes of R ranks",
              .all_reduce = {hierarchical::make, hierarchical::cost},
              .reduce_scatter = {},
              .all_gather = {},
              .needs = Needs::several_nodes},
    staged_row(),
    mpi_on_devices(),
    nccl_row("nccl", "GPUs: NCCL's own choice"),
    nccl_row("nccl:ring/ll", "NCCL's ring, where each 4 bytes carry a flag"),
    nccl_row("nccl:ring/ll128", "NCCL's ring, where each 120 bytes carry a flag"),
    nccl_row("nccl:ring/simple", "NCCL's ring, in chunks with a flag each"),
    nccl_row("nccl:tree/ll", "NCCL's double binary tree, flags as in ring/ll", true),
    nccl_row("nccl:tree/ll128", "NCCL's double binary tree, flags as in ring/ll128", true),
    nccl_row("nccl:tree/simple", "NCCL's double binary tree, flags as in ring/simple", true),
    by_switches(nccl_row("nccl:nvls", "NCCL through the switches of a node (NVLink SHARP)"),
                nccl::why_not_by_switches_of_a_node),
    by_switches(
        nccl_row("nccl:nvlstree", "NCCL through the switches of each node, and trees between several nodes", true),
        nccl::why_not_by_trees_of_switches),
};

/// Does not compile for a name outside the table.
consteval const Algorithm* row(std::string_view name) {
  for (const Algorithm& algorithm : table)
    if (algorithm.name == name) return &algorithm;
  throw "no such algorithm";
}

}  // namespace

const Implementation& Algorithm::implementation(Collective collective) const noexcept {
  switch (collective) {
    case Collective::reduce_scatter: return reduce_scatter;
    case Collective::all_gather: return all_gather;
    case Collective::all_reduce: break;
  }
  return all_reduce;
}

bool Algorithm::does(Collective collective) const noexcept {
  if (is_for_devices()) return !only_all_reduce || collective == Collective::all_reduce;
  return implementation(collective).make != nullptr;
}

std::span<const Algorithm> algorithms() noexcept { return table; }

const Algorithm* find_algorithm(std::string_view name) noexcept {
  for (const Algorithm& algorithm : table)
    if (algorithm.name == name) return &algorithm;
  return nullptr;
}

Choice choose(const Call& call, std::span<const int> nodes) {
  const auto n_nodes = 1 + static_cast<std::size_t>(*std::max_element(nodes.begin(), nodes.end()));
  const bool is_all_reduce = call.collective == Collective::all_reduce;
  const bool gathers_on_node = call.collective == Collective::all_gather && n_nodes == 1;  // nothing is summed
  if (call.is_order_fixed && !gathers_on_node)
    return {is_all_reduce ? row("recursive_doubling") : row("recursive_halving")};
  if (n_nodes == 1) return {row("shm"), is_all_reduce};
  if (!is_all_reduce) return {row("ring")};
  if (call.bytes() <= largest_short_message) return {row("recursive_doubling")};
  if (nodes.size() > n_nodes) return {row("hierarchical")};
  return {std::has_single_bit(n_nodes) ? row("rabenseifner") : row("ring")};
}

const Algorithm& choose_for_devices(const Call& call, const Transport& transport, Devices devices) {
  const Algorithm& library = *row("nccl");
  return obstacle(library, call, transport, devices) ? *row("staged") : library;
}

Devices devices_of(const runtime::DeviceChoice& choice) noexcept {
  if (choice.is_host()) return Devices::none;
  if (choice.is_shared && !choice.has_hosts_for_nccl) return Devices::shared;
  return choice.all_have_switches ? Devices::switched : Devices::own;
}

std::optional<std::string> obstacle(const Algorithm& algorithm, const Call& call, const Transport& transport,
                                    Devices devices) {
  if (algorithm.is_for_devices() != (devices != Devices::none))
    return algorithm.is_for_devices() ? "works only on the memory of GPUs" : "works only on the memory of the host";
  if (!algorithm.does(call.collective)) return fmt::format("does not support {}", name(call.collective));
  if (call.is_order_fixed && call.collective != Collective::all_gather && !algorithm.keeps_order)
    return "does not reduce in a fixed order";
  switch (algorithm.needs) {
    case Needs::mpi_processes:
      if (transport.communicator().mpi() == nullptr) return "needs ranks that are MPI processes";
      break;
    case Needs::one_node:
      if (transport.n_nodes() > 1)
        return fmt::format("needs all ranks on one node, and these are on {} nodes", transport.n_nodes());
      break;
    case Needs::several_nodes:
      if (transport.n_nodes() == 1) return "needs ranks on several nodes, and these are all on one";
      break;
    case Needs::own_devices:
    case Needs::switches:
      if (devices == Devices::shared) return "needs a GPU for each rank, and some of these share one";
      if (algorithm.needs == Needs::switches && devices == Devices::own)
        return "needs NVSwitches that reduce (Hopper or newer, CUDA 12.1), and some of these GPUs have none";
      break;
    case Needs::nothing:
    case Needs::devices: break;
  }
  return algorithm.why_not != nullptr ? algorithm.why_not(call, transport) : std::nullopt;
}

bool may_be_added_up_on_the_way(const Call& call, Devices devices) {
  const char* const sharp = std::getenv("NCCL_COLLNET_ENABLE");
  return call.collective == Collective::all_reduce &&
         (devices == Devices::switched || (sharp != nullptr && std::string_view{sharp} == "1"));
}

std::unique_ptr<Plan> make_plan(const Algorithm& algorithm, Transport& transport, const Call& call) {
  if (const auto why_not = obstacle(algorithm, call, transport))
    core::fail_usage(
        {.what = fmt::format("algorithm {} {}", algorithm.name, *why_not), .where = "", .expected = "", .fix = ""});
  return algorithm.implementation(call.collective).make(transport, call);
}

std::unique_ptr<Plan> make_plan(Transport& transport, const Call& call) {
  return make_plan(*choose(call, transport.nodes()).algorithm, transport, call);
}

}  // namespace lockstep::comm

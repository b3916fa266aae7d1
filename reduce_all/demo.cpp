#include "reduce_all/demo.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "core/print.hpp"

namespace lockstep::reduce_all {
namespace {

using Vector = std::array<double, 4>;  // exact for any number of ranks

// Prints one line of every rank, in rank order.
void print_all(const runtime::Communicator& world, const std::string& mine) {
  for (const std::string& line : world.gather(mine)) core::print(line + "\n");
}

// An algorithm made for the present nodes, if one takes part.
const comm::Algorithm& choose(const std::vector<Participant>& participants, const comm::Call& call,
                              const comm::Transport& transport) {
  for (const Participant& participant : participants) {
    const comm::Algorithm& algorithm = participant.runs(call, transport);
    if (algorithm.needs == comm::Needs::one_node || algorithm.needs == comm::Needs::several_nodes) return algorithm;
  }
  return participants.front().runs(call, transport);
}

}  // namespace

bool run_demo(const runtime::Communicator& world, const runtime::Topology& topology, comm::Transport& transport,
              const std::vector<Participant>& participants) {
  const int n_ranks = world.n_ranks();
  const std::string& host = topology.places[static_cast<std::size_t>(world.rank())].host;
  print_all(world, fmt::format("Hello from rank {} of {} on {}", world.rank(), n_ranks, host));

  Vector input;
  input.fill(world.rank());
  Vector output{};
  print_all(world, fmt::format("{}, rank {}: before {}", host, world.rank(), fmt::join(input, " ")));

  const comm::Call call{.dtype = core::DType::float64, .n_elements = input.size()};
  const comm::Algorithm& algorithm = choose(participants, call, transport);
  const auto plan = comm::make_plan(algorithm, transport, call);
  plan->bind(std::as_bytes(std::span{input}), std::as_writable_bytes(std::span{output}));
  plan->run();
  print_all(world, fmt::format("{}, rank {}: after {}", host, world.rank(), fmt::join(output, " ")));

  const double expected = static_cast<double>(n_ranks) * (n_ranks - 1) / 2;
  const bool is_wrong =
      world.any(std::any_of(output.begin(), output.end(), [expected](double value) { return value != expected; }));
  if (world.rank() == 0)
    core::print(fmt::format("all_reduce ({}) of {} ranks: {} W(W-1)/2 = {}\n", algorithm.name, n_ranks,
                            is_wrong ? "WRONG: not every element is" : "every element is", expected));
  return !is_wrong;
}

}  // namespace lockstep::reduce_all

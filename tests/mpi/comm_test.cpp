// Every algorithm over real ranks: exact results on one node and on simulated nodes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <span>

#include "comm/transport.hpp"
#include "mpi/forbidden_collectives.hpp"
#include "support/collective_case.hpp"
#include "support/mpi_main.hpp"

namespace lockstep {
namespace {

using comm::Call;
using comm::Collective;
using comm::ReduceOp;
using core::DType;
using support::CollectiveCase;
using support::Mode;

std::unique_ptr<comm::Transport> transport(int ranks_per_node) {
  return comm::make_transport(support::world(), {.ranks_per_node = ranks_per_node, .oversubscribed = true});
}

/// Runs `body` for every algorithm and collective that these ranks support: MPI's own, or all others if its collectives
/// are forbidden.
template <class Body>
void for_each_algorithm(comm::Transport& over, Body body) {
  for (const comm::Algorithm& algorithm : comm::algorithms()) {
    if ((algorithm.needs == comm::Needs::mpi_processes) == support::mpi_collectives_are_forbidden()) continue;
    for (const Collective collective : comm::all_collectives)
      if (!comm::obstacle(algorithm, {collective}, over)) body(algorithm, collective);
  }
}

class OnNodes : public testing::TestWithParam<int> {
 protected:
  void check_lengths(std::span<const std::size_t> lengths) {
    const auto over = transport(GetParam());
    for_each_algorithm(*over, [&](const comm::Algorithm& algorithm, Collective collective) {
      for (const std::size_t n : lengths) {
        const Call call{collective, DType::float32, ReduceOp::sum, n};
        EXPECT_NO_THROW(support::check(*over, {.algorithm = &algorithm, .call = call}));
        EXPECT_NO_THROW(
            support::check(*over, {.algorithm = &algorithm, .call = call, .in_place = true, .mode = Mode::start_wait}));
      }
    });
  }

  /// Checks the types and operations that `is_chosen(type, operation)` accepts, with different numbers for each
  /// algorithm.
  template <class IsChosen>
  void check_types(IsChosen is_chosen) {
    const auto over = transport(GetParam());
    std::size_t n_algorithms = 0;
    for_each_algorithm(*over, [&](const comm::Algorithm& algorithm, Collective collective) {
      ++n_algorithms;
      for (std::size_t t = 0; t < std::size(core::all_dtypes); ++t) {
        for (std::size_t o = 0; o < std::size(comm::all_reduce_ops); ++o) {
          const DType dtype = core::all_dtypes[t];
          const ReduceOp op = comm::all_reduce_ops[o];
          if (!is_chosen(t + n_algorithms, o) || (collective == Collective::all_gather && op != ReduceOp::sum))
            continue;
          EXPECT_NO_THROW(support::check(
              *over,
              {.algorithm = &algorithm, .call = {collective, dtype, op, 517}, .mode = Mode::start_test, .n_calls = 2}));
        }
      }
    });
  }
};

// Only here is MPI's own algorithm tested. unit.comm_conformance_tests tests the others over threads; over MPI a few
// cases of each are enough. The disabled tests, with the label long, are all cases.
TEST_P(OnNodes, ResultIsExactForLengths) { check_lengths(std::array<std::size_t, 5>{0, 1, 7, 1001, 70'001}); }

TEST_P(OnNodes, ResultIsExactForTypesAndOperations) {
  check_types([](std::size_t type, std::size_t operation) {
    return !support::mpi_collectives_are_forbidden() || type % std::size(comm::all_reduce_ops) == operation;
  });
}

TEST_P(OnNodes, DISABLED_ResultIsExactForEveryLength) {
  check_lengths(std::array<std::size_t, 9>{0, 1, 2, 3, 7, 64, 1001, 70'001, 300'007});
}

TEST_P(OnNodes, DISABLED_ResultIsExactForEveryTypeAndOperation) {
  check_types([](std::size_t, std::size_t) { return true; });
}

TEST_P(OnNodes, PlansInFlightTogetherDoNotMix) {
  const auto over = transport(GetParam());
  for_each_algorithm(*over, [&](const comm::Algorithm& algorithm, Collective collective) {
    if (collective != Collective::all_reduce) return;
    const Call call{collective, DType::int64, ReduceOp::sum, 40'000};
    std::vector<std::vector<std::int64_t>> data(3, std::vector<std::int64_t>(call.n_elements));
    std::vector<std::unique_ptr<comm::Plan>> plans;
    for (std::size_t k = 0; k < data.size(); ++k) {
      std::fill(data[k].begin(), data[k].end(), over->rank() + static_cast<std::int64_t>(1000 * k));
      plans.push_back(comm::make_plan(algorithm, *over, call));
      plans[k]->bind(std::as_bytes(std::span{data[k]}), std::as_writable_bytes(std::span{data[k]}));
    }
    for (const auto& plan : plans) plan->start({});
    for (const auto& plan : plans) plan->wait();
    const std::int64_t p = over->n_ranks();
    for (std::size_t k = 0; k < data.size(); ++k) {
      const std::int64_t expected = p * (p - 1) / 2 + p * static_cast<std::int64_t>(1000 * k);
      EXPECT_EQ(std::count(data[k].begin(), data[k].end(), expected), static_cast<std::ptrdiff_t>(call.n_elements))
          << algorithm.name;
    }
  });
}

// 0: the machine as it is.
INSTANTIATE_TEST_SUITE_P(RanksPerNode, OnNodes, testing::Values(0, 1, 2), testing::PrintToStringParamName{});

TEST(Split, KnowsTheNodesOfItsRanks) {
  const auto over = transport(2);
  const auto reversed = over->split(0, -over->rank());
  const std::vector<int> back(reversed->nodes().rbegin(), reversed->nodes().rend());
  EXPECT_EQ(comm::renumber(back), over->nodes());
  EXPECT_EQ(reversed->nodes().front(), 0);
  const auto node = over->split(over->nodes()[static_cast<std::size_t>(over->rank())], over->rank());
  EXPECT_EQ(node->n_nodes(), 1);
}

TEST(Nodes, ComeFromTheTopologyIfThereIsOne) {
  runtime::Topology topology = runtime::discover_topology(support::world());
  for (runtime::Place& place : topology.places) place.node = place.rank / 2;
  topology.cpus_per_node.assign(topology.places.size(), 2);
  const auto over = comm::make_transport(support::world(), {.topology = &topology});
  EXPECT_EQ(over->n_nodes(), (over->n_ranks() + 1) / 2);
  const auto divided = comm::make_transport(support::world(), {.ranks_per_node = 1, .topology = &topology});
  EXPECT_EQ(divided->n_nodes(), over->n_ranks());
}

TEST(Obstacles, AreNamed) {
  const auto over = transport(1);
  const comm::Algorithm& shm = *comm::find_algorithm("shm");
  if (over->n_ranks() == 1) {
    EXPECT_FALSE(comm::obstacle(shm, {}, *over));
    return;
  }
  ASSERT_TRUE(comm::obstacle(shm, {}, *over));
  EXPECT_NE(comm::obstacle(shm, {}, *over)->find("one node"), std::string::npos);
}

}  // namespace
}  // namespace lockstep

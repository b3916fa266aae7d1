// Every algorithm except `mpi`, over threads as ranks: exact results, and messages and bytes as in the registry.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "comm/transport_threads.hpp"
#include "core/error.hpp"
#include "support/collective_case.hpp"

namespace lockstep {
namespace {

using comm::Algorithm;
using comm::Call;
using comm::Collective;
using comm::ReduceOp;
using core::DType;
using support::CollectiveCase;
using support::Mode;

/// Powers of two, numbers between, and one more than a power.
const int some_rank_counts[] = {1, 2, 3, 4, 5, 7, 8};
const int more_rank_counts[] = {6, 9, 16, 17};

/// Elements, and whether the order is fixed.
const std::pair<std::size_t, bool> calls_for_traffic[] = {{0, false},  {1, false},  {2, false},    {7, false},
                                                          {16, false}, {17, false}, {1001, false}, {100'003, false},
                                                          {0, true},   {3, true},   {1001, true}};

/// Divides ranks among nodes in blocks whose sizes differ by at most one; or in turn, like cards.
std::vector<int> on_nodes(int n_ranks, int n_nodes, bool in_turn) {
  std::vector<int> nodes;
  for (int r = 0; r < n_ranks; ++r) nodes.push_back(in_turn ? r % n_nodes : r * n_nodes / n_ranks);
  return nodes;
}

bool applies(const Algorithm& algorithm, Collective collective, const std::vector<int>& nodes) {
  if (algorithm.implementation(collective).make == nullptr) return false;
  const int n_nodes = 1 + *std::max_element(nodes.begin(), nodes.end());
  switch (algorithm.needs) {
    case comm::Needs::mpi_processes: return false;
    case comm::Needs::one_node: return n_nodes == 1;
    case comm::Needs::several_nodes: return n_nodes > 1;
    case comm::Needs::devices:
    case comm::Needs::own_devices:
    case comm::Needs::switches:
    case comm::Needs::nothing: break;
  }
  return n_nodes == 1;  // messages do not depend on nodes
}

comm::Traffic run(const std::vector<int>& nodes, const std::vector<CollectiveCase>& cases) {
  return comm::run_as_threads(nodes, [&](comm::Transport& transport) {
    for (const CollectiveCase& which : cases) support::check(transport, which);
  });
}

class OverThreads : public testing::TestWithParam<int> {
 protected:
  int n_ranks() const { return GetParam(); }

  template <class Body>
  void for_each_algorithm(Body body) const {
    for (int n_nodes = 1; n_nodes <= std::min(4, n_ranks()); ++n_nodes) {
      for (const bool in_turn : {false, true}) {
        if (in_turn && (n_nodes == 1 || n_nodes == n_ranks())) continue;  // the same as in blocks
        const std::vector<int> nodes = on_nodes(n_ranks(), n_nodes, in_turn);
        for (const Algorithm& algorithm : comm::algorithms())
          for (const Collective collective : comm::all_collectives)
            if (applies(algorithm, collective, nodes)) body(algorithm, collective, nodes);
      }
    }
  }
};

TEST_P(OverThreads, ResultIsExactForEveryLength) {
  for_each_algorithm([&](const Algorithm& algorithm, Collective collective, const std::vector<int>& nodes) {
    std::vector<CollectiveCase> cases;
    for (const std::size_t n : {0, 1, 2, 3, 5, 13, 14, 15, 29, 31, 257, 1000, 4099}) {
      const Call call{collective, DType::float32, ReduceOp::sum, n};
      cases.push_back({.algorithm = &algorithm, .call = call});
      cases.push_back({.algorithm = &algorithm, .call = call, .in_place = true, .mode = Mode::start_wait});
    }
    EXPECT_NO_THROW(run(nodes, cases));
  });
}

TEST_P(OverThreads, ResultIsExactForEveryTypeAndOperation) {
  for_each_algorithm([&](const Algorithm& algorithm, Collective collective, const std::vector<int>& nodes) {
    std::vector<CollectiveCase> cases;
    for (const DType dtype : core::all_dtypes)
      for (const ReduceOp op : comm::all_reduce_ops)
        if (collective != Collective::all_gather || op == ReduceOp::sum)
          cases.push_back(
              {.algorithm = &algorithm, .call = {collective, dtype, op, 39}, .mode = Mode::start_test, .n_calls = 2});
    EXPECT_NO_THROW(run(nodes, cases));
  });
}

TEST_P(OverThreads, LongVectorsInSegmentsAndChunks) {
  for_each_algorithm([&](const Algorithm& algorithm, Collective collective, const std::vector<int>& nodes) {
    // Several segments (16,384 elements each) and chunks for up to 9 ranks, and not a multiple of anything.
    const Call call{collective, DType::float64, ReduceOp::avg,
                    35'001 * static_cast<std::size_t>(std::min(n_ranks(), 5))};
    EXPECT_NO_THROW(run(nodes, {{.algorithm = &algorithm, .call = call, .n_calls = 2},
                                {.algorithm = &algorithm, .call = call, .in_place = true, .n_calls = 1}}));
  });
}

TEST_P(OverThreads, PartsMayBeCutAtMultiples) {
  for_each_algorithm([&](const Algorithm& algorithm, Collective collective, const std::vector<int>& nodes) {
    std::vector<CollectiveCase> cases;
    for (const std::size_t n : {0, 5, 1000, 20'011})
      for (const bool in_place : {false, true})
        cases.push_back({.algorithm = &algorithm,
                         .call = {.collective = collective, .n_elements = n, .grain = 48},
                         .in_place = in_place});
    EXPECT_NO_THROW(run(nodes, cases));
  });
}

/// Whether a call in fixed order is possible: any gather, and reductions that keep the order.
bool may_fix_order(const Algorithm& algorithm, Collective collective) {
  return algorithm.keeps_order || collective == Collective::all_gather;
}

TEST_P(OverThreads, PartsMayLieInTheOrderOfATree) {
  for_each_algorithm([&](const Algorithm& algorithm, Collective collective, const std::vector<int>& nodes) {
    std::vector<CollectiveCase> cases;
    for (const std::size_t n : {0, 5, 1000, 20'011})
      for (const std::size_t grain : {1, 48})
        for (const bool in_place : {false, true})
          cases.push_back({.algorithm = &algorithm,
                           .call = {.collective = collective, .n_elements = n, .grain = grain, .is_order_fixed = true},
                           .in_place = in_place});
    if (may_fix_order(algorithm, collective))
      EXPECT_NO_THROW(run(nodes, cases));
    else
      EXPECT_THROW(run(nodes, cases), core::Error) << algorithm.name;
  });
}

/// Begins of parts that grow, after an empty one.
std::vector<std::size_t> growing_parts(std::size_t n_elements, int n_ranks) {
  const auto n = static_cast<std::size_t>(n_ranks);
  std::vector<std::size_t> cuts{0};
  for (std::size_t i = 1; i < n; ++i) cuts.push_back(n_elements * (i - 1) * (i - 1) / (n * n));
  cuts.push_back(n_elements);
  return cuts;
}

TEST_P(OverThreads, PartsMayHaveAnyLength) {
  for_each_algorithm([&](const Algorithm& algorithm, Collective collective, const std::vector<int>& nodes) {
    for (const std::size_t n : {0, 5, 1000, 80'021}) {
      const std::vector<std::size_t> cuts = growing_parts(n, n_ranks());
      for (const bool is_order_fixed : {false, true}) {
        if (is_order_fixed && !may_fix_order(algorithm, collective)) continue;
        const Call call{.collective = collective, .n_elements = n, .is_order_fixed = is_order_fixed, .cuts = cuts};
        const comm::Traffic traffic =
            run(nodes, {{.algorithm = &algorithm, .call = call, .n_calls = 1},
                        {.algorithm = &algorithm, .call = call, .in_place = true, .n_calls = 1}});
        const comm::Cost cost = algorithm.implementation(collective).cost(call, nodes);
        EXPECT_EQ(traffic.messages, 2 * cost.messages) << algorithm.name << " " << comm::name(collective) << " " << n;
        EXPECT_EQ(traffic.bytes, 2 * cost.bytes) << algorithm.name << " " << comm::name(collective) << " " << n;
      }
    }
  });
}

TEST_P(OverThreads, TrafficIsWhatTheRegistrySays) {
  for_each_algorithm([&](const Algorithm& algorithm, Collective collective, const std::vector<int>& nodes) {
    for (const auto& [n, is_order_fixed] : calls_for_traffic) {
      if (is_order_fixed && !may_fix_order(algorithm, collective)) continue;
      const Call call{.collective = collective, .n_elements = n, .is_order_fixed = is_order_fixed};
      const comm::Traffic traffic = run(nodes, {{.algorithm = &algorithm, .call = call, .n_calls = 1}});
      const comm::Cost cost = algorithm.implementation(collective).cost(call, nodes);
      const std::string where = fmt::format("{} {} n={} ranks={} fixed={}", algorithm.name, comm::name(collective), n,
                                            n_ranks(), is_order_fixed);
      EXPECT_EQ(traffic.messages, cost.messages) << where;
      EXPECT_EQ(traffic.bytes, cost.bytes) << where;
      if (n == 100'003) continue;  // segments of a long vector wait for each other
      EXPECT_LE(traffic.steps, cost.steps) << where;
      const auto n_nodes = static_cast<unsigned>(1 + *std::max_element(nodes.begin(), nodes.end()));
      if (n == 1001 && std::has_single_bit(nodes.size()) && std::has_single_bit(n_nodes)) {
        EXPECT_EQ(traffic.steps, cost.steps) << where;
      }
    }
  });
}

TEST_P(OverThreads, AllRanksGetTheSameBits) {
  for_each_algorithm([&](const Algorithm& algorithm, Collective collective, const std::vector<int>& nodes) {
    if (collective != Collective::all_reduce) return;
    const Call call{collective, DType::float32, ReduceOp::sum, 501};
    std::vector<std::vector<float>> results(nodes.size(), std::vector<float>(call.n_elements));
    comm::run_as_threads(nodes, [&](comm::Transport& transport) {
      std::vector<float> input(call.n_elements);
      for (std::size_t i = 0; i < input.size(); ++i)
        input[i] = 1.0F / static_cast<float>(i + 1 + 3 * static_cast<std::size_t>(transport.rank()));
      const auto plan = comm::make_plan(algorithm, transport, call);
      auto& output = results[static_cast<std::size_t>(transport.rank())];
      plan->bind(std::as_bytes(std::span{input}), std::as_writable_bytes(std::span{output}));
      plan->run();
    });
    for (const auto& result : results) EXPECT_EQ(result, results.front()) << algorithm.name;
  });
}

/// Element i of rank r is a NaN if i belongs to r; every (ranks + 1)th element has none.
template <class T>
void check_nan(const Algorithm& algorithm, comm::Transport& transport, const Call& call) {
  const auto n_turns = static_cast<std::size_t>(transport.n_ranks()) + 1;
  const auto rank = static_cast<std::size_t>(transport.rank());
  std::vector<T> input(call.n_elements, T{1.0F});
  for (std::size_t i = rank; i < input.size(); i += n_turns) input[i] = T{std::numeric_limits<float>::quiet_NaN()};
  const core::Slice mine = call.output(transport.rank(), transport.n_ranks());
  std::vector<T> output(mine.count);
  const auto plan = comm::make_plan(algorithm, transport, call);
  plan->bind(std::as_bytes(std::span{input}), std::as_writable_bytes(std::span{output}));
  plan->run();
  for (std::size_t i = 0; i < output.size(); ++i) {
    const auto value = static_cast<double>(static_cast<float>(output[i]));
    const bool wants_nan = (mine.offset + i) % n_turns != n_turns - 1;
    if (wants_nan ? !std::isnan(value) : value != 1)
      throw std::runtime_error(fmt::format("{} {} {} {}: element {} at rank {} of {} is {}", algorithm.name,
                                           comm::name(call.collective), comm::name(call.op), core::name(call.dtype),
                                           mine.offset + i, rank, n_turns - 1, value));
  }
}

TEST_P(OverThreads, MinAndMaxGiveNaNWhicheverRankHasIt) {
  for_each_algorithm([&](const Algorithm& algorithm, Collective collective, const std::vector<int>& nodes) {
    if (collective == Collective::all_gather) return;
    EXPECT_NO_THROW(comm::run_as_threads(nodes, [&](comm::Transport& transport) {
      for (const DType dtype : {DType::float16, DType::bfloat16, DType::float32, DType::float64})
        for (const ReduceOp op : {ReduceOp::min, ReduceOp::max})
          for (const std::size_t n : {5, 131, 20'011})  // flat, sliced and several chunks
            core::visit(dtype, [&]<class T>(std::type_identity<T>) {
              if constexpr (!std::is_integral_v<T>) check_nan<T>(algorithm, transport, {collective, dtype, op, n});
            });
    }));
  });
}

TEST_P(OverThreads, PlansInFlightTogetherDoNotMix) {
  for_each_algorithm([&](const Algorithm& algorithm, Collective collective, const std::vector<int>& nodes) {
    if (collective != Collective::all_reduce) return;
    EXPECT_NO_THROW(comm::run_as_threads(nodes, [&](comm::Transport& transport) {
      const Call call{collective, DType::int64, ReduceOp::sum, 333};
      std::vector<std::vector<std::int64_t>> data(3, std::vector<std::int64_t>(call.n_elements));
      std::vector<std::unique_ptr<comm::Plan>> plans;
      for (std::size_t k = 0; k < data.size(); ++k) {
        std::fill(data[k].begin(), data[k].end(), transport.rank() + static_cast<std::int64_t>(1000 * k));
        plans.push_back(comm::make_plan(algorithm, transport, call));
        plans[k]->bind(std::as_bytes(std::span{data[k]}), std::as_writable_bytes(std::span{data[k]}));
      }
      for (const auto& plan : plans) plan->start({});
      for (std::size_t k = data.size(); k-- > 0;) plans[k]->wait();
      const std::int64_t p = transport.n_ranks();
      for (std::size_t k = 0; k < data.size(); ++k)
        for (const std::int64_t value : data[k])
          if (value != p * (p - 1) / 2 + p * static_cast<std::int64_t>(1000 * k)) throw std::runtime_error("mixed up");
    })) << algorithm.name;
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, OverThreads, testing::ValuesIn(some_rank_counts), testing::PrintToStringParamName{});
INSTANTIATE_TEST_SUITE_P(DISABLED_Ranks, OverThreads, testing::ValuesIn(more_rank_counts),
                         testing::PrintToStringParamName{});

}  // namespace
}  // namespace lockstep

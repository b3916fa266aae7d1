#include <fmt/format.h>
#include <gtest/gtest.h>

#include "comm/transport_threads.hpp"
#include "core/error.hpp"
#include "support/collective_case.hpp"

namespace lockstep::comm {
namespace {

constexpr std::size_t few = 16 * 1024 / sizeof(float);
using Nodes = std::vector<int>;

std::string chosen(const Call& call, const Nodes& nodes) { return std::string{choose(call, nodes).algorithm->name}; }

TEST(Choose, OneNodeSharesItsMemory) {
  for (const Collective collective : all_collectives)
    for (const std::size_t n : {std::size_t{1}, few, 1000 * few}) {
      const Choice choice = choose({.collective = collective, .n_elements = n}, Nodes{0, 0, 0});
      EXPECT_EQ(choice.algorithm->name, "shm");
      EXPECT_EQ(choice.is_fused, collective == Collective::all_reduce);
    }
}

TEST(Choose, BetweenNodesByLengthAndRanks) {
  EXPECT_EQ(chosen({.n_elements = few}, {0, 1, 2}), "recursive_doubling");
  EXPECT_EQ(chosen({.n_elements = few}, {0, 0, 1, 1}), "recursive_doubling");
  EXPECT_EQ(chosen({.n_elements = few + 1}, {0, 1, 2}), "ring");
  EXPECT_EQ(chosen({.n_elements = few + 1}, {0, 1, 2, 3}), "rabenseifner");
  EXPECT_EQ(chosen({.n_elements = few + 1}, {0, 0, 1, 1}), "hierarchical");
  EXPECT_EQ(chosen({.dtype = core::DType::float64, .n_elements = few}, {0, 0, 1}), "hierarchical");
  EXPECT_EQ(chosen({.collective = Collective::reduce_scatter, .n_elements = 1}, {0, 0, 1}), "ring");
  EXPECT_EQ(chosen({.collective = Collective::all_gather, .n_elements = 9 * few}, {0, 1}), "ring");
  EXPECT_FALSE(choose({.n_elements = few}, Nodes{0, 0, 1, 1}).is_fused);
}

TEST(Choose, AFixedOrderIsATree) {
  for (const Nodes& nodes : {Nodes{0}, Nodes{0, 0}, Nodes{0, 0, 1}, Nodes{0, 1, 2, 3}})
    for (const std::size_t n : {std::size_t{1}, 1000 * few}) {
      const Call call{.n_elements = n, .is_order_fixed = true};
      EXPECT_EQ(chosen(call, nodes), "recursive_doubling");
      EXPECT_FALSE(choose(call, nodes).is_fused);
    }
  const Call scatter{.collective = Collective::reduce_scatter, .n_elements = few, .is_order_fixed = true};
  const Call gather{.collective = Collective::all_gather, .n_elements = few, .is_order_fixed = true};
  EXPECT_EQ(chosen(scatter, {0, 0}), "recursive_halving");
  EXPECT_EQ(chosen(scatter, {0, 1, 2}), "recursive_halving");
  EXPECT_EQ(chosen(gather, {0, 0}), "shm");  // it sums nothing
  EXPECT_EQ(chosen(gather, {0, 1, 2}), "recursive_halving");
}

TEST(Choose, WhatIsChosenCanDoTheCall) {
  for (const Nodes& nodes : {Nodes{0}, Nodes{0, 0, 0}, Nodes{0, 1, 2}, Nodes{0, 0, 1, 1}, Nodes{0, 1, 0, 0, 1}})
    for (const Collective collective : all_collectives)
      for (const std::size_t n : {std::size_t{0}, std::size_t{1}, few, few + 1, 10 * few + 3})
        EXPECT_NO_THROW(run_as_threads(nodes, [&](Transport& transport) {
          for (const bool is_order_fixed : {false, true}) {
            const Call call{.collective = collective, .n_elements = n, .is_order_fixed = is_order_fixed};
            support::check(transport, {.algorithm = choose(call, nodes).algorithm, .call = call, .n_calls = 1});
          }
        })) << fmt::format("{} of {} at {} ranks", name(collective), n, nodes.size());
}

}  // namespace
}  // namespace lockstep::comm

#include "runtime/topology.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "support/text.hpp"

namespace lockstep::runtime {
namespace {

using support::has;

struct Bound {
  int node = 0;
  std::vector<int> cpus;
  int core = -1;
};

Topology make_topology(const std::vector<Bound>& ranks) {
  Topology topology;
  for (const Bound& bound : ranks) {
    Place place;
    place.rank = static_cast<int>(topology.places.size());
    place.node = bound.node;
    place.host = "node" + std::to_string(bound.node);
    place.cpus = bound.cpus;
    place.core = bound.core;
    topology.places.push_back(place);
    topology.n_nodes = std::max(topology.n_nodes, bound.node + 1);
  }
  topology.cores_per_node.assign(static_cast<std::size_t>(topology.n_nodes), 2);
  std::vector<std::set<int>> cpus(static_cast<std::size_t>(topology.n_nodes));
  for (const Bound& bound : ranks)
    cpus[static_cast<std::size_t>(bound.node)].insert(bound.cpus.begin(), bound.cpus.end());
  for (const std::set<int>& of_node : cpus) topology.cpus_per_node.push_back(static_cast<int>(of_node.size()));
  return topology;
}

std::string only_warning(const Topology& topology) {
  const std::vector<std::string> warnings = topology.warnings();
  EXPECT_EQ(warnings.size(), 1);
  return warnings.empty() ? "" : warnings.front();
}

TEST(Binding, EachRankOnItsOwnCore) {
  const Topology topology = make_topology({{0, {0, 4}, 0}, {0, {1, 5}, 1}});
  EXPECT_FALSE(topology.is_oversubscribed());
  EXPECT_EQ(topology.binding(), "2 ranks on 1 node, each bound to its own core");
  EXPECT_TRUE(topology.warnings().empty());
}

TEST(Binding, EachRankOnItsOwnHalf) {
  const Topology topology = make_topology({{0, {0, 1}}, {0, {2, 3}}});
  EXPECT_EQ(topology.binding(), "2 ranks on 1 node, each bound to its own processors");
  EXPECT_TRUE(topology.warnings().empty());
}

TEST(Binding, SameCoreNumbersOnOtherNodesAreOtherCores) {
  const Topology topology = make_topology({{0, {0}, 0}, {1, {0}, 0}});
  EXPECT_EQ(topology.binding(), "2 ranks on 2 nodes, each bound to its own core");
}

TEST(Binding, NobodyIsBound) {
  const Topology topology = make_topology({{0, {0, 1}}, {0, {0, 1}}});
  EXPECT_EQ(topology.binding(), "2 ranks on 1 node, not bound");
  const std::string warning = only_warning(topology);
  EXPECT_TRUE(has(warning, "2 of 2 ranks on node0")) << warning;
  EXPECT_TRUE(has(warning, "mpirun --bind-to core")) << warning;
  EXPECT_TRUE(has(warning, "srun --cpu-bind=cores")) << warning;
}

TEST(Binding, SomeAreNotBound) {
  const Topology topology = make_topology({{0, {0}, 0}, {0, {0, 1, 2}}, {0, {2}, 2}});
  EXPECT_EQ(topology.binding(), "3 ranks on 1 node, 1 of them not bound");
  EXPECT_TRUE(has(only_warning(topology), "1 of 3 ranks on node0"));
}

TEST(Binding, ASingleRankNeedsNone) {
  EXPECT_EQ(make_topology({{0, {0, 1}}}).binding(), "1 rank on 1 node, not bound");
  EXPECT_EQ(make_topology({{0, {0, 1}, 0}}).binding(), "1 rank on 1 node, bound to its own core");
  EXPECT_TRUE(make_topology({{0, {0, 1}}}).warnings().empty());
  EXPECT_TRUE(make_topology({{0, {0, 1}}, {1, {0, 1}}}).warnings().empty());
}

TEST(Binding, TwoRanksShareACore) {
  const Topology topology = make_topology({{0, {3}, 3}, {0, {3}, 3}, {0, {4}, 4}, {0, {5, 6}}});
  EXPECT_EQ(topology.binding(), "4 ranks on 1 node, bound, but ranks 0 and 1 share core 3");
  EXPECT_TRUE(has(only_warning(topology), "ranks 0 and 1 share core 3"));
}

TEST(Binding, TwoHardwareThreadsAreOneCore) {
  const Topology topology = make_topology({{0, {1}, 1}, {0, {5}, 1}});
  EXPECT_TRUE(has(only_warning(topology), "ranks 0 and 1 share core 1"));
}

TEST(Binding, TwoRanksShareAProcessor) {
  const Topology topology = make_topology({{0, {0, 1}}, {0, {1, 2}}});
  EXPECT_TRUE(has(topology.binding(), "ranks 0 and 1 share processor 1"));
  EXPECT_TRUE(has(only_warning(topology), "ranks 0 and 1 share processor 1"));
}

TEST(Oversubscription, IsNamedAndNotBlamedOnBinding) {
  const Topology topology = make_topology({{0, {0, 1}}, {0, {0, 1}}, {0, {0, 1}}});
  EXPECT_TRUE(topology.is_oversubscribed());
  const std::string warning = only_warning(topology);
  EXPECT_TRUE(has(warning, "node0 runs 3 ranks on 2 processors")) << warning;
  EXPECT_TRUE(has(warning, "at most 2 ranks")) << warning;
}

TEST(Oversubscription, CountsThreads) {
  const Topology topology = make_topology({{0, {0, 1, 2, 3}}, {0, {0, 1, 2, 3}}});
  EXPECT_TRUE(topology.warnings(2).empty());
  ASSERT_EQ(topology.warnings(3).size(), 1);
  EXPECT_TRUE(has(topology.warnings(3).front(), "node0 runs 2 ranks with 3 threads each on 4 processors"));
  EXPECT_TRUE(make_topology({{0, {0}, 0}, {1, {0}, 0}}).warnings(1).empty());
  EXPECT_TRUE(has(make_topology({{0, {0}, 0}, {1, {0}, 0}}).warnings(2).at(0), "(likewise on 1 other node)"));
  const std::vector<std::string> ranks = make_topology({{0, {0}}, {0, {0}}}).warnings(2);
  ASSERT_EQ(ranks.size(), 1);
  EXPECT_TRUE(has(ranks.front(), "2 ranks on 1 processor"));
}

TEST(Oversubscription, IsCountedByNode) {
  EXPECT_FALSE(make_topology({{0, {0}, 0}, {1, {0}, 0}, {2, {0}, 0}}).is_oversubscribed());
  EXPECT_TRUE(make_topology({{0, {0}, 0}, {1, {0}, 0}, {1, {0}, 0}}).is_oversubscribed());
}

TEST(Warnings, OfManyNodesAreOneLine) {
  const Topology topology =
      make_topology({{0, {0, 1}}, {0, {0, 1}}, {1, {0, 1}}, {1, {0, 1}}, {2, {0, 1}}, {2, {0, 1}}});
  EXPECT_TRUE(has(only_warning(topology), "(likewise on 2 other nodes)"));
}

}  // namespace
}  // namespace lockstep::runtime

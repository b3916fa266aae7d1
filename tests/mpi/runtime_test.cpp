#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "core/timer.hpp"
#include "runtime/communicator_mpi.hpp"
#include "runtime/environment.hpp"
#include "runtime/launcher.hpp"
#include "runtime/session.hpp"
#include "runtime/topology.hpp"
#include "support/mpi_main.hpp"
#include "support/set_clock.hpp"

namespace lockstep::runtime {
namespace {

using support::world;

int n_receives = 0;  // calls of MPI_Recv, see below

std::string repeat(int rank) {
  return std::string(static_cast<std::size_t>(rank) * 1000, static_cast<char>('a' + rank));
}

TEST(Communicator, WorldIsADuplicateThatReturnsErrors) {
  int relation = MPI_IDENT;
  MPI_Comm_compare(world().mpi()->raw(), MPI_COMM_WORLD, &relation);
  EXPECT_EQ(relation, MPI_CONGRUENT);
  try {
    (void)world().broadcast("", world().n_ranks());
    FAIL() << "there is no such root";
  } catch (const core::Error& error) {
    EXPECT_EQ(error.code(), core::ExitCode::system);
    const std::string text = error.what();
    EXPECT_NE(text.find("MPI_Bcast failed on rank " + std::to_string(world().rank())), std::string::npos) << text;
    EXPECT_NE(text.find(host_name()), std::string::npos) << text;
  }
}

// No time passes by this clock.
TEST(Communicator, AwaitsAllAsLongAsItsClockAllows) {
  const auto meeting = world().duplicate();
  const support::SetClock still;
  EXPECT_TRUE(meeting->await_all(core::Seconds{0}, still));
}

TEST(Communicator, SplitOrdersByKeyThenRank) {
  const int rank = world().rank();
  const auto own_part = world().split(rank % 2, -rank);
  const runtime::Communicator& part = *own_part;
  const int n_peers = (world().n_ranks() + 1 - rank % 2) / 2;
  EXPECT_EQ(part.n_ranks(), n_peers);
  EXPECT_EQ(part.rank(), n_peers - 1 - rank / 2);
}

TEST(Communicator, SplitSharedGroupsRanksOfAHost) {
  const auto own_node = world().split_shared();
  const runtime::Communicator& node = *own_node;
  for (const std::string& host : node.gather(host_name())) EXPECT_EQ(host, host_name());
  EXPECT_LE(node.n_ranks(), world().n_ranks());
}

TEST(Communicator, BarrierHoldsUntilTheLastArrives) {
  const auto own_node = world().split_shared();
  const runtime::Communicator& node = *own_node;  // one clock
  double arrival = 0;
  if (node.rank() == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds{50});
    arrival = core::now().value;
  }
  node.barrier();
  const double departure = core::now().value;
  EXPECT_GE(departure, broadcast_value(node, arrival));
}

TEST(Communicator, BroadcastsFromAnyRoot) {
  for (int root = 0; root < world().n_ranks(); ++root) {
    EXPECT_EQ(broadcast_value(world(), world().rank() + 40, root), root + 40);
    EXPECT_EQ(world().broadcast(repeat(world().rank()), root), repeat(root));
  }
}

TEST(Communicator, BroadcastsLongText) {
  const std::string text(3'000'001, 'x');
  EXPECT_EQ(world().broadcast(world().rank() == 0 ? text : "ignored"), text);
}

TEST(Communicator, GathersBlocksInRankOrder) {
  const int root = world().n_ranks() - 1;
  const int mine = world().rank() * 3;
  const std::vector<std::byte> blocks = world().gather(std::as_bytes(std::span{&mine, 1}), root);
  if (world().rank() != root) {
    EXPECT_TRUE(blocks.empty());
    return;
  }
  std::vector<int> values(blocks.size() / sizeof(int));
  std::memcpy(values.data(), blocks.data(), blocks.size());
  ASSERT_EQ(values.size(), static_cast<std::size_t>(world().n_ranks()));
  for (int rank = 0; rank < world().n_ranks(); ++rank) EXPECT_EQ(values[static_cast<std::size_t>(rank)], rank * 3);
}

TEST(Communicator, GathersTextsOfAnyLength) {
  const int root = world().n_ranks() / 2;
  const std::vector<std::string> texts = world().gather(repeat(world().rank()), root);
  if (world().rank() != root) {
    EXPECT_TRUE(texts.empty());
    return;
  }
  ASSERT_EQ(texts.size(), static_cast<std::size_t>(world().n_ranks()));
  for (int rank = 0; rank < world().n_ranks(); ++rank) EXPECT_EQ(texts[static_cast<std::size_t>(rank)], repeat(rank));
}

class GatheredRow : public testing::TestWithParam<std::size_t> {};

TEST_P(GatheredRow, IsThatOfItsRank) {
  std::vector<double> row(GetParam());
  std::iota(row.begin(), row.end(), world().rank() * 1e6);
  const std::vector<double> all = gather_values(world(), std::span<const double>{row});
  if (world().rank() != 0) {
    EXPECT_TRUE(all.empty());
    return;
  }
  ASSERT_EQ(all.size(), row.size() * static_cast<std::size_t>(world().n_ranks()));
  for (std::size_t i = 0; i < all.size(); ++i)
    ASSERT_EQ(all[i], static_cast<double>(i / row.size()) * 1e6 + static_cast<double>(i % row.size())) << i;
}

// 200 000 doubles of any number of ranks exceed the limit for MPI_Gather.
INSTANTIATE_TEST_SUITE_P(Sizes, GatheredRow, testing::Values(0, 1, 20'000, 200'000));

TEST(Communicator, AnyFindsEachRank) {
  EXPECT_FALSE(world().any(false));
  for (int rank = 0; rank < world().n_ranks(); ++rank) EXPECT_TRUE(world().any(rank == world().rank()));
}

std::optional<core::Error> error_if(bool fails, core::ExitCode code, const std::string& what) {
  if (!fails) return std::nullopt;
  return core::Error{code, {what, "", "", ""}};
}

TEST(Agree, IsSilentWithoutAnError) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(support::session().agree(std::nullopt), std::nullopt);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Agree, TellsAllRanksOfOne) {
  for (int culprit = 0; culprit < world().n_ranks(); ++culprit) {
    const auto mine = error_if(world().rank() == culprit, core::ExitCode::usage, "no such file");
    testing::internal::CaptureStderr();
    EXPECT_EQ(support::session().agree(mine), core::ExitCode::usage);
    const std::string message = testing::internal::GetCapturedStderr();
    EXPECT_EQ(message.find("no such file") != std::string::npos, world().rank() == culprit) << message;
  }
}

TEST(Agree, PrintsTheErrorOfTheLowestRankOnly) {
  const int lowest = world().n_ranks() / 2;
  const auto code = world().rank() == lowest ? core::ExitCode::usage : core::ExitCode::system;
  const auto mine = error_if(world().rank() >= lowest, code, "broken");
  testing::internal::CaptureStderr();
  EXPECT_EQ(support::session().agree(mine), core::ExitCode::usage);
  EXPECT_EQ(testing::internal::GetCapturedStderr().empty(), world().rank() != lowest);
}

TEST(Launcher, AgreesWithMpi) {
  const LauncherHint hint = read_launcher_hint();
  if (hint.name.empty()) {
    EXPECT_EQ(world().n_ranks(), 1) << "several ranks, and no launcher recognised";
    return;
  }
  EXPECT_EQ(hint.rank, world().rank());
  EXPECT_EQ(hint.n_ranks, world().n_ranks());
  const auto own_node = world().split_shared();
  const runtime::Communicator& node = *own_node;
  EXPECT_EQ(hint.n_local_ranks, node.n_ranks());
  EXPECT_EQ(node.broadcast(hint.job_key), hint.job_key);
}

TEST(Topology, DescribesEveryRank) {
  const Topology topology = discover_topology(world());
  ASSERT_EQ(topology.places.size(), static_cast<std::size_t>(world().n_ranks()));
  for (int rank = 0; rank < world().n_ranks(); ++rank)
    EXPECT_EQ(topology.places[static_cast<std::size_t>(rank)].rank, rank);
  const auto own_node = world().split_shared();
  const runtime::Communicator& node = *own_node;
  const Place& mine = topology.places[static_cast<std::size_t>(world().rank())];
  EXPECT_EQ(mine.host, host_name());
  EXPECT_EQ(mine.local_rank, node.rank());
  ASSERT_FALSE(mine.cpus.empty());
  EXPECT_TRUE(std::is_sorted(mine.cpus.begin(), mine.cpus.end()));
  EXPECT_LT(mine.cpus.back(), sysconf(_SC_NPROCESSORS_CONF));
  EXPECT_EQ(topology.places[0].node, 0);
}

TEST(Topology, CountsNodesAndCores) {
  const Topology topology = discover_topology(world());
  std::set<int> nodes;
  for (const Place& place : topology.places) nodes.insert(place.node);
  EXPECT_EQ(static_cast<int>(nodes.size()), topology.n_nodes);
  ASSERT_EQ(static_cast<int>(topology.cores_per_node.size()), topology.n_nodes);
  for (const int n_cores : topology.cores_per_node) {
    EXPECT_GE(n_cores, 1);
    EXPECT_LE(n_cores, sysconf(_SC_NPROCESSORS_CONF));
  }
}

TEST(Topology, IsTheSameOnEveryRank) {
  const Topology topology = discover_topology(world());
  std::string text = topology.is_oversubscribed() ? "oversubscribed" : "";
  for (const Place& p : topology.places)
    text += ' ' + std::to_string(p.node) + ' ' + std::to_string(p.local_rank) + ' ' + std::to_string(p.core);
  EXPECT_EQ(world().broadcast(text), text);
}

TEST(Topology, RankZeroKnowsHostAndProcessorsOfAll) {
  const Topology topology = discover_topology(world());
  for (const Place& p : topology.places)
    EXPECT_EQ(!p.host.empty() && !p.cpus.empty(), world().rank() == 0 || p.rank == world().rank()) << p.rank;
  if (world().rank() != 0) return;
  EXPECT_EQ(topology.hosts().size(), static_cast<std::size_t>(topology.n_nodes));
  EXPECT_EQ(topology.hosts().front(), host_name());
}

TEST(Topology, SparesNoCoreThatARankNeeds) {
  const Topology topology = discover_topology(world());
  const std::size_t n_spare = spare_cores(world());
  EXPECT_LT(n_spare, topology.places[static_cast<std::size_t>(world().rank())].cpus.size());
  EXPECT_TRUE(n_spare == 0 || !topology.is_oversubscribed());
}

// Rank 0 would receive messages of thousands of ranks one after the other.
TEST(Startup, SendsNoMessageOfEachRankToRankZero) {
  n_receives = 0;
  (void)discover_topology(world());
  (void)read_environment(world());
  EXPECT_EQ(n_receives, 0);
}

TEST(Environment, IsComplete) {
  const Environment environment = read_environment(world());
  for (const std::string* fact :
       {&environment.time, &environment.lockstep, &environment.compiler, &environment.mpi_library,
        &environment.mpi_standard, &environment.mpi_thread_level, &environment.cpu_model, &environment.governor,
        &environment.kernel, &environment.transparent_huge_pages})
    EXPECT_FALSE(fact->empty());
  EXPECT_EQ(environment.time.size(), std::string{"2000-01-01T00:00:00Z"}.size());
  EXPECT_EQ(environment.page_bytes, sysconf(_SC_PAGESIZE));
  const auto n_nodes = static_cast<std::size_t>(discover_topology(world()).n_nodes);
  EXPECT_EQ(environment.hosts.size(), world().rank() == 0 ? n_nodes : 0);
}

TEST(Environment, RecordsSettingsAndNoSecrets) {
  setenv("NCCL_DEBUG", "WARN", 1);
  setenv("UCX_SECRET_PORT", "hush-1", 1);
  setenv("LOCKSTEP_API_KEY", "hush-2", 1);
  setenv("HOME_TOWN", "hush-3", 1);
  const Environment environment = read_environment(world());
  const std::pair<std::string, std::string> setting{"NCCL_DEBUG", "WARN"};
  EXPECT_EQ(std::count(environment.variables.begin(), environment.variables.end(), setting), 1);
  for (const auto& [name, value] : environment.variables) EXPECT_FALSE(value.starts_with("hush")) << name;
}

}  // namespace
}  // namespace lockstep::runtime

// Replaces MPI's own, to count.
extern "C" int MPI_Recv(void* data, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status* status) {
  ++lockstep::runtime::n_receives;
  return PMPI_Recv(data, n, type, from, tag, comm, status);
}

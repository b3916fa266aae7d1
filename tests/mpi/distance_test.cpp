// The distance of cores between real ranks, and that all ranks learn of its changes.
#include <gtest/gtest.h>

#include "comm/transport.hpp"
#include "reduce_all/cores.hpp"
#include "support/mpi_main.hpp"

namespace lockstep::reduce_all {
namespace {

using support::world;

class Cores : public testing::Test {
 protected:
  // On the machine as it is: more ranks than processors must not take long.
  std::unique_ptr<comm::Transport> transport = comm::make_transport(world(), {.oversubscribed = true});
  runtime::Drill drill;
  runtime::Watchdog watchdog{{}, {0}, &drill};

  Progress progress(const char* faults = nullptr) {
    if (faults != nullptr) drill.add(faults, runtime::FaultTaker::reduce_all);
    return {watchdog, &drill};
  }
};

TEST_F(Cores, HaveADistanceWhereRanksHaveNeighbours) {
  Progress quiet = progress();
  CoreWatch cores{world(), *transport, false, quiet};
  EXPECT_EQ(cores.is_on(), world().n_ranks() > 1);
  const auto reach = cores.reach();
  ASSERT_EQ(reach.has_value(), cores.is_on());
  if (!reach || world().rank() > 0) return;
  EXPECT_GT(reach->round_trip.nearest_ns, 1);
  EXPECT_LE(reach->round_trip.nearest_ns, reach->round_trip.median_ns);
  EXPECT_LE(reach->round_trip.median_ns, reach->round_trip.farthest_ns);
  EXPECT_GT(reach->read_GBps, 0);
}

TEST_F(Cores, HaveNoneWhereRanksShareThemOrAreAlone) {
  Progress quiet = progress();
  EXPECT_FALSE((CoreWatch{world(), *transport, true, quiet}.is_on()));
  const auto alone = comm::make_transport(world(), {.ranks_per_node = 1, .oversubscribed = true});
  CoreWatch cores{world(), *alone, false, quiet};
  EXPECT_FALSE(cores.is_on());
  EXPECT_FALSE(cores.have_moved());
  EXPECT_EQ(std::string{cores.why_off()}.empty(), world().n_ranks() == 1);
}

TEST_F(Cores, AllRanksLearnOfAMoveThatASecondLookConfirms) {
  if (world().n_ranks() == 1) return;
  Progress moving = progress("move:3");
  CoreWatch cores{world(), *transport, false, moving};
  cores.settle();                    // near
  EXPECT_FALSE(cores.have_moved());  // near
  EXPECT_FALSE(cores.have_moved());  // near
  EXPECT_TRUE(cores.have_moved());   // far, far
  EXPECT_TRUE(cores.have_moved());   // far: it stays true
  EXPECT_EQ(cores.at_last().farthest_ns, world().rank() == 0 ? 400 : 0);
  EXPECT_EQ(cores.shortest().farthest_ns, world().rank() == 0 ? 100 : 0);
  cores.settle();  // near
  EXPECT_FALSE(cores.has_moved());
}

TEST_F(Cores, OneLookAloneIsNoMove) {
  if (world().n_ranks() == 1) return;
  Progress blinking = progress("move:1");
  CoreWatch cores{world(), *transport, false, blinking};
  cores.settle();
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(cores.have_moved());  // far, near
}

}  // namespace
}  // namespace lockstep::reduce_all

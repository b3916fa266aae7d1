#include "comm/schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "comm/registry.hpp"
#include "core/error.hpp"

namespace lockstep::comm {
namespace {

TEST(Schedule, LeavesOutEmptyRegionsAndIdleSlots) {
  Schedule schedule;
  schedule.send(0, 1, {Operand::input, {0, 0}});
  schedule.recv(1, 1, {Operand::output, {0, 0}});
  schedule.wait(0);
  schedule.wait(7);
  schedule.copy({Operand::output, {3, 4}}, {Operand::output, {3, 4}});
  schedule.divide({Operand::output, {0, 4}}, 1);
  EXPECT_TRUE(schedule.steps().empty());
}

TEST(Schedule, RefusesTwoMessagesInOneSlot) {
  Schedule schedule;
  schedule.send(0, 1, {Operand::input, {0, 4}});
  EXPECT_THROW(schedule.recv(0, 1, {Operand::output, {0, 4}}), core::Error);
}

TEST(Schedule, SegmentsAreNoLongerThanAsked) {
  const Call call{Collective::all_reduce, core::DType::float64, ReduceOp::sum, 1000};
  EXPECT_EQ(count_segments(call, 1000, 800), 10U);
  EXPECT_EQ(count_segments(call, 1001, 800), 11U);
  EXPECT_EQ(count_segments(call, 0, 800), 1U);
  EXPECT_EQ(count_segments(call, 3, 1), 3U);
}

TEST(Registry, NamesAreUniqueAndFound) {
  for (const Algorithm& algorithm : algorithms()) {
    EXPECT_EQ(find_algorithm(algorithm.name), &algorithm);
    EXPECT_FALSE(algorithm.summary.empty());
    EXPECT_TRUE(!algorithm.is_for_devices() || algorithm.all_reduce.make == nullptr) << algorithm.name;
    EXPECT_TRUE(std::ranges::any_of(all_collectives, [&](Collective c) { return algorithm.does(c); }))
        << algorithm.name;
  }
  EXPECT_EQ(find_algorithm("rnig"), nullptr);
}

}  // namespace
}  // namespace lockstep::comm

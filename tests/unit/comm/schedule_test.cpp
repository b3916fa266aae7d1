#include "comm/schedule.hpp"

#include <gtest/gtest.h>

#include "comm/registry.hpp"
#include "core/error.hpp"

namespace lockstep::comm {
namespace {

TEST(Partition, PartsAreContiguousAndDifferByAtMostOne) {
  for (const std::size_t n : {0, 1, 5, 16, 17, 1000}) {
    for (std::size_t n_parts = 1; n_parts <= 19; ++n_parts) {
      std::size_t next = 0;
      for (std::size_t index = 0; index < n_parts; ++index) {
        const Slice part = partition(n, n_parts, index);
        EXPECT_EQ(part.offset, next);
        EXPECT_LE(part.count, partition(n, n_parts, 0).count);
        EXPECT_LE(partition(n, n_parts, 0).count, part.count + 1);
        next += part.count;
      }
      EXPECT_EQ(next, n);
    }
  }
}

TEST(Schedule, LeavesOutEmptyRegionsAndIdleSlots) {
  Schedule schedule;
  schedule.send(0, 1, {Memory::input, 0, 0});
  schedule.recv(1, 1, {Memory::output, 0, 0});
  schedule.wait(0);
  schedule.wait(7);
  schedule.copy({Memory::output, 3, 4}, {Memory::output, 3, 4});
  schedule.divide({Memory::output, 0, 4}, 1);
  EXPECT_TRUE(schedule.steps().empty());
}

TEST(Schedule, RefusesTwoMessagesInOneSlot) {
  Schedule schedule;
  schedule.send(0, 1, {Memory::input, 0, 4});
  EXPECT_THROW(schedule.recv(0, 1, {Memory::output, 0, 4}), core::Error);
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
    EXPECT_NE(algorithm.all_reduce.make, nullptr) << algorithm.name;
  }
  EXPECT_EQ(find_algorithm("rnig"), nullptr);
}

}  // namespace
}  // namespace lockstep::comm

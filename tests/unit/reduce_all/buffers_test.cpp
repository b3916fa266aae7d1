#include "reduce_all/buffers.hpp"

#include <gtest/gtest.h>

#include <set>

#include "runtime/memory.hpp"

namespace lockstep::reduce_all {
namespace {

comm::Call call_of(comm::Collective collective, std::size_t n_elements) {
  return {.collective = collective, .n_elements = n_elements};
}

TEST(Buffers, HaveTheSizesThePlansAskFor) {
  for (const bool in_place : {false, true}) {
    BufferPool pool{{4096}, BufferMode::hot, in_place, runtime::last_level_cache()};
    for (const comm::Collective collective : comm::all_collectives) {
      const comm::Call call = call_of(collective, 11);
      const CallBuffers buffers = pool.next(call, 1, 3);
      EXPECT_EQ(buffers.input.size(), 4 * call.input(1, 3).count);
      EXPECT_EQ(buffers.output.size(), 4 * call.output(1, 3).count);
    }
  }
}

TEST(Buffers, InPlaceTheyOverlapAsPlansExpect) {
  BufferPool pool{{4096}, BufferMode::hot, true, runtime::last_level_cache()};
  CallBuffers buffers = pool.next(call_of(comm::Collective::all_reduce, 11), 1, 3);
  EXPECT_EQ(buffers.input.data(), buffers.output.data());
  buffers = pool.next(call_of(comm::Collective::reduce_scatter, 11), 1, 3);
  EXPECT_EQ(buffers.input.data() + 16, buffers.output.data());  // parts of 4, 4 and 3 elements
  buffers = pool.next(call_of(comm::Collective::all_gather, 11), 1, 3);
  EXPECT_EQ(buffers.input.data(), buffers.output.data() + 16);
}

TEST(Buffers, OnlyColdOnesRotate) {
  BufferPool hot{{4096}, BufferMode::hot, false, runtime::last_level_cache()};
  const comm::Call call = call_of(comm::Collective::all_reduce, 1024);
  EXPECT_EQ(hot.next(call, 0, 2).input.data(), hot.next(call, 0, 2).input.data());

  BufferPool cold{{4096}, BufferMode::cold, false, runtime::last_level_cache()};
  std::set<const std::byte*> seen;
  while (seen.insert(cold.next(call, 0, 2).input.data()).second) {
  }
  EXPECT_GT(seen.size() * 4096, 2 * runtime::last_level_cache().value);
}

}  // namespace
}  // namespace lockstep::reduce_all

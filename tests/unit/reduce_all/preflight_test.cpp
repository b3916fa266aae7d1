#include "reduce_all/preflight.hpp"

#include <gtest/gtest.h>

namespace lockstep::reduce_all {
namespace {

runtime::Topology one_node(std::size_t n_ranks) {
  runtime::Topology topology;
  topology.n_nodes = 1;
  topology.places.resize(n_ranks);
  return topology;
}

TEST(Memory, KeptTimesCount) {
  Options options;
  options.max_bytes = options.min_bytes;
  EXPECT_NO_THROW(check_memory(options, options.max_bytes, one_node(2), 0, 6));
  options.iterations = 10'000'000;  // 80 MB per algorithm and rank
  try {
    check_memory(options, options.max_bytes, one_node(100'000), 0, 6);
    FAIL() << "no machine has that much";
  } catch (const core::Error& error) {
    EXPECT_EQ(error.code(), core::ExitCode::usage);
    EXPECT_EQ(error.problem().where, "--iterations");
  }
}

TEST(World, OneRankIsNoPlural) {
  Options options;
  options.expect_ranks = 2;
  const auto complaint = core::complaint_of([&] { check_world(options, {}, 1); });
  ASSERT_TRUE(complaint);
  EXPECT_EQ(complaint->problem().what, "the job has 1 rank");
}

}  // namespace
}  // namespace lockstep::reduce_all

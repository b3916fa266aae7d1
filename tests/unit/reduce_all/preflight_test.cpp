#include "reduce_all/preflight.hpp"

#include <gtest/gtest.h>

#include "reduce_all/links.hpp"

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

TEST(Memory, WhatIsExchangedIsOnTheGpuToo) {
  runtime::DeviceChoice device;
  device.number = 0;
  device.gpu.memory = {std::uint64_t{1} << 30};
  EXPECT_NO_THROW(check_device_memory({}, {480 << 20}, {}, device, 2));
  EXPECT_NO_THROW(check_device_memory({}, {440 << 20}, {64 << 20}, device, 2));
  const auto complaint = core::complaint_of([&] { check_device_memory({}, {480 << 20}, {64 << 20}, device, 2); });
  ASSERT_TRUE(complaint);
  EXPECT_NE(complaint->problem().fix.find("-e 447M"), std::string::npos) << complaint->problem().fix;
}

TEST(Links, AreALimitWhereARingHasNoneOfSeveralNetworkCards) {
  const auto of = [](std::size_t n_ranks, int n_nodes) {
    runtime::Topology topology = one_node(n_ranks);
    topology.n_nodes = n_nodes;
    return topology;
  };
  runtime::DeviceChoice device;
  EXPECT_FALSE(may_have_links(device, of(4, 1))) << "the host";
  device.number = 0;
  EXPECT_TRUE(may_have_links(device, of(4, 1)));
  EXPECT_TRUE(may_have_links(device, of(4, 4)));
  EXPECT_FALSE(may_have_links(device, of(4, 2)));
  EXPECT_FALSE(may_have_links(device, of(1, 1)));
  const std::string limit = describe_limit_of_devices({}, of(4, 1), true);
  EXPECT_NE(limit.find("the slower of two limits"), std::string::npos) << limit;
  EXPECT_NE(limit.find("2(P-1)/P of the vector, or all of it once where switches reduce"), std::string::npos) << limit;
  EXPECT_EQ(describe_limit_of_devices({}, of(4, 1), false).find("links"), std::string::npos);
  EXPECT_NE(describe_limit_of_devices({}, of(4, 2), false).find("network"), std::string::npos);
  device.is_shared = true;
  EXPECT_FALSE(may_have_links(device, of(4, 1)));
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

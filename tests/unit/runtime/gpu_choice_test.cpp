// Which GPUs the ranks of a node get, by nearness.
#include "runtime/gpu_choice.hpp"

#include <gtest/gtest.h>

#include "runtime/processor_list.hpp"

namespace lockstep::runtime {
namespace {

using Numbers = std::vector<int>;

TEST(Gpus, AreGivenInTurnWhereAllAreAlike) {
  EXPECT_EQ(assign_gpus({}), Numbers{});
  EXPECT_EQ(assign_gpus({"1"}), Numbers{0});
  EXPECT_EQ(assign_gpus({"1111", "1111", "1111", "1111"}), (Numbers{0, 1, 2, 3}));
  EXPECT_EQ(assign_gpus({"00", "00"}), (Numbers{0, 1}));
  EXPECT_EQ(assign_gpus({"11", "11", "11", "11", "11"}), (Numbers{0, 1, 0, 1, 0})) << "more ranks than GPUs";
}

TEST(Gpus, GoToRanksNearThem) {
  // A node whose first GPU is near its last cores.
  EXPECT_EQ(assign_gpus({"0001", "0010", "0100", "1000"}), (Numbers{3, 2, 1, 0}));
  EXPECT_EQ(assign_gpus({"0011", "0011", "1100", "1100"}), (Numbers{2, 3, 0, 1}));
  EXPECT_EQ(assign_gpus({"0001", "1000"}), (Numbers{3, 0})) << "fewer ranks than GPUs";
  EXPECT_EQ(assign_gpus({"11", "10"}), (Numbers{1, 0})) << "who may have any waits for who may not";
  EXPECT_EQ(assign_gpus({"10", "10"}), (Numbers{0, 1})) << "one of them is far";
  EXPECT_EQ(assign_gpus({"01", "10", "01", "10"}), (Numbers{1, 0, 1, 0}));
}

TEST(Gpus, FarFromTheirRanksAreToldOf) {
  DeviceChoice choice{.number = 0, .all = {"a", "b", "c"}, .far = {}};
  Topology topology;
  topology.places.resize(3);
  topology.places[2].host = "n1";
  EXPECT_EQ(warning_of_far_gpus(choice, topology), "");
  choice.far = {2};
  EXPECT_EQ(warning_of_far_gpus(choice, topology).find("1 of 3 ranks runs on processors far"), 0U);
  EXPECT_NE(warning_of_far_gpus(choice, topology).find("rank 2 on n1"), std::string::npos);
}

TEST(Gpus, HaveTheTraitsOfTheirKindAndTheirPrecisions) {
  const DeviceChoice host, older{.number = 0}, newer{.number = 0, .all_have_bf16 = true};
  EXPECT_EQ(traits_of(host), DeviceTraits{});
  EXPECT_EQ(traits_of(host), traits_of(DeviceKind::host));
  EXPECT_EQ(traits_of(newer), traits_of(DeviceKind::cuda));
  EXPECT_FALSE(traits_of(older).has_bf16);
  EXPECT_TRUE(traits_of(older).has_f16 && traits_of(older).has_own_memory && traits_of(older).runs_behind);
}

TEST(ProcessorList, IsThatOfTheKernel) {
  EXPECT_EQ(parse_processors("0-2,8,10-11\n"), (std::vector<int>{0, 1, 2, 8, 10, 11}));
  EXPECT_EQ(parse_processors(""), std::vector<int>{});
  EXPECT_EQ(parse_processors("\n"), std::vector<int>{});
  EXPECT_EQ(format_processors({0, 1, 2, 8, 10, 11}), "0-2,8,10-11");
  EXPECT_TRUE(have_common({0, 3}, {1, 2, 3}));
  EXPECT_FALSE(have_common({0, 3}, {}));
}

}  // namespace
}  // namespace lockstep::runtime

#include "core/suggest.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace lockstep::core {
namespace {

const std::vector<std::string> algorithms{"mpi", "ring", "recursive_doubling", "rabenseifner", "tree", "shm"};

TEST(Suggest, FindsSlips) {
  const std::map<std::string, std::string> slips{{"rnig", "ring"},
                                                 {"rin", "ring"},
                                                 {"rings", "ring"},
                                                 {"rung", "ring"},
                                                 {"smh", "shm"},
                                                 {"RING", "ring"},
                                                 {"ring", "ring"},
                                                 {"recursive-doubling", "recursive_doubling"},
                                                 {"recursivedubling", "recursive_doubling"},
                                                 {"rabenseifer", "rabenseifner"}};
  for (const auto& [word, meant] : slips) EXPECT_EQ(near_miss(word, algorithms), meant) << word;
}

TEST(Suggest, CompletesUniqueBeginnings) {
  EXPECT_EQ(near_miss("rec", algorithms), "recursive_doubling");
  EXPECT_EQ(near_miss("t", algorithms), "tree");
  EXPECT_FALSE(near_miss("r", algorithms));
  EXPECT_EQ(near_miss("AVX512", std::vector<std::string>{"AVX2", "AVX512_CORE_VNNI", "AVX512_CORE"}), "AVX512_CORE");
}

TEST(Suggest, IsSilentWhereNothingIsNear) {
  for (const char* word : {"", "x", "nccl", "rxxg", "gnir", "hierarchical"}) {
    EXPECT_FALSE(near_miss(word, algorithms)) << word;
  }
  EXPECT_FALSE(near_miss("ring", {}));
  EXPECT_FALSE(near_miss("a", std::vector<std::string>{"b"}));  // replacing all of it is no slip
}

TEST(Suggest, PrefersTheNearest) {
  EXPECT_EQ(near_miss("float61", std::vector<std::string>{"float64", "bfloat61", "float16"}), "float64");
  EXPECT_EQ(near_miss("abcdefghi", std::vector<std::string>{"abcdefxyz", "abcdefghx"}), "abcdefghx");
}

TEST(Suggest, Joins) {
  EXPECT_EQ(join({}), "");
  EXPECT_EQ(join(std::vector<std::string>{"a"}), "a");
  EXPECT_EQ(join(std::vector<std::string>{"a", "b", "c"}), "a, b, c");
  EXPECT_EQ(join(std::vector<std::string>{"a", "b"}, "|"), "a|b");
}

TEST(Suggest, DistanceCountsEachEditOnceInAnyCase) {
  EXPECT_EQ(edit_distance("NCCL_DEBUG", "nccl_debug"), 0U);
  EXPECT_EQ(edit_distance("DEUBG", "DEBUG"), 1U);  // swapped neighbours
  EXPECT_EQ(edit_distance("IB_SL", "IB_TC"), 2U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("abc", "bcd"), 2U);
}

}  // namespace
}  // namespace lockstep::core

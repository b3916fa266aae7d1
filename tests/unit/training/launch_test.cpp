#include "training/launch.hpp"

#include <gtest/gtest.h>

#include "refused.hpp"

namespace lockstep::training {
namespace {

TEST(Launch, ProcessesThatDoNotKnowEachOtherAreFound) {
  runtime::LauncherHint hint;
  hint.name = "Hydra mpiexec";
  hint.n_ranks = 3;
  ASSERT_TRUE(find_singletons(hint, 1).has_value());
  EXPECT_NE(std::string{find_singletons(hint, 1)->what()}.find("Hydra mpiexec"), std::string::npos);
  EXPECT_FALSE(find_singletons(hint, 3).has_value());
  hint.n_ranks = 1;
  EXPECT_FALSE(find_singletons(hint, 1).has_value());
  EXPECT_FALSE(find_singletons({}, 1).has_value());
}

TEST(Launch, NprocMustAgreeWithTheLauncher) {
  EXPECT_NO_THROW(check_nproc(0, 3));
  EXPECT_NO_THROW(check_nproc(3, 3));
  EXPECT_NE(refused([] { check_nproc(2, 3); }).find("--nproc"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::training

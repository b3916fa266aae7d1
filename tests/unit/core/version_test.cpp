#include "core/version.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace lockstep::core {
namespace {

TEST(Version, IsThreeNumbers) {
  EXPECT_EQ(version().find_first_not_of("0123456789."), std::string_view::npos) << version();
  EXPECT_EQ(std::count(version().begin(), version().end(), '.'), 2) << version();
}

TEST(Version, NamesTheCompilerAndItsVersion) {
  const std::size_t space = compiler().find(' ');
  ASSERT_NE(space, std::string_view::npos) << compiler();
  EXPECT_GT(space, 0u);
  const std::string_view number = compiler().substr(space + 1);
  EXPECT_NE(number.find('.'), std::string_view::npos) << compiler();
  EXPECT_EQ(number.find_first_not_of("0123456789."), std::string_view::npos) << compiler();
}

TEST(Version, TellsDebugBuildsFromReleases) {
  EXPECT_FALSE(build_type().empty());
  if (build_type() == "Debug" || build_type() == "Release") {
    EXPECT_EQ(is_debug_build(), build_type() == "Debug");
  }
}

}  // namespace
}  // namespace lockstep::core

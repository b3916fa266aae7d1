#include "runtime/asked.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace lockstep::runtime {
namespace {

constexpr const char* asked_place = "LOCKSTEP_SIGNAL_URI";

// On another node, the process of that number is another one.
TEST(Asked, AFileOfSomebodyElseIsNotTouched) {
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(pwrite(fileno(file), "01234567", 8, 0), 8);
  setenv(asked_place, fmt::format("/proc/{}/fd/{}", getpid(), fileno(file)).c_str(), 1);
  find_place_to_tell();
  tell_start();
  std::string text(8, ' ');
  ASSERT_EQ(pread(fileno(file), text.data(), text.size(), 0), 8);
  EXPECT_EQ(text, "01234567");
  EXPECT_EQ(told_signal(), 0);
  std::fclose(file);
  unsetenv(asked_place);
}

TEST(Asked, RanksLearnWhichSignalCame) {
  prepare_to_tell_signal();
  EXPECT_FALSE(was_rank_started());
  find_place_to_tell();
  EXPECT_FALSE(was_rank_started());
  EXPECT_TRUE(tell_exit(3));
  EXPECT_EQ(told_exit(), 3);
  EXPECT_FALSE(was_rank_started());
  tell_start();
  EXPECT_TRUE(was_rank_started());
  EXPECT_EQ(told_signal(), 0);
  tell_signal(SIGHUP);
  EXPECT_EQ(told_signal(), SIGHUP);
  EXPECT_TRUE(tell_exit(0));
  EXPECT_FALSE(tell_exit(4));
  EXPECT_EQ(told_exit(), 3) << "the first counts";
  tell_signal(0);  // for other tests of this process
  unsetenv(asked_place);
}

}  // namespace
}  // namespace lockstep::runtime

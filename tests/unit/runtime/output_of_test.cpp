#include "runtime/output_of.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cerrno>

#include "core/timer.hpp"

namespace lockstep::runtime {
namespace {

std::optional<std::string> output_of_shell(const std::string& script, double limit = 60) {
  return output_of({"sh", "-c", script}, {limit});
}

TEST(OutputOf, IsWhatItPrints) {
  EXPECT_EQ(output_of_shell("echo a b; echo c >&2; cat; printf d"), "a b\nd");
  EXPECT_EQ(output_of({"printf", "%s", "a  b"}, {60}), "a  b");
  EXPECT_EQ(output_of_shell("head -c 200000 /dev/zero")->size(), 200'000u);
  EXPECT_EQ(output_of_shell("true"), "");
}

TEST(OutputOf, IsNothingOfWhatFails) {
  EXPECT_FALSE(output_of({"no-such-program-anywhere"}, {60}));
  EXPECT_FALSE(output_of_shell("echo a; exit 3"));
  EXPECT_FALSE(output_of_shell("echo a; kill -9 $$"));
  EXPECT_FALSE(output_of_shell("head -c 2000000 /dev/zero"));
}

TEST(OutputOf, DoesNotWaitForEver) {
  const core::Stopwatch watch;
  EXPECT_FALSE(output_of_shell("sleep 1000 & sleep 1000", 0.2));
  EXPECT_FALSE(output_of_shell("while :; do echo a; done | head -c 100; sleep 1000", 0.2));
  EXPECT_FALSE(output_of_shell("exec >&-; sleep 1000", 0.2));
  EXPECT_LT(watch.elapsed().value, 30);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD) << "a process is left";
}

}  // namespace
}  // namespace lockstep::runtime

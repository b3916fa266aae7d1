#include "runtime/process.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/runtime/full_output.hpp"

namespace lockstep::runtime {
namespace {

TEST(Process, KnowsItself) {
  const auto me = read_process(getpid());
  ASSERT_TRUE(me);
  EXPECT_EQ(me->state, 'R');
  EXPECT_EQ(me->parent, getppid());
  EXPECT_GT(me->start_time, 0);
  EXPECT_GE(me->start_time, read_process(getppid())->start_time);
}

TEST(Process, SeesAChildStoppedEndedAndGone) {
  const pid_t child = fork();
  if (child == 0) {
    raise(SIGSTOP);
    _exit(0);
  }
  ASSERT_EQ(waitpid(child, nullptr, WUNTRACED), child);
  EXPECT_EQ(read_process(child)->state, 'T');
  kill(child, SIGKILL);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(read_process(child)->state, 'Z');
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(read_process(child));
  EXPECT_FALSE(was_started_with(child, "PATH"));
}

TEST(Process, SeesTheEnvironmentAtStartOnly) {
  ASSERT_EQ(setenv("LOCKSTEP_SET_LATER", "1", 1), 0);
  EXPECT_FALSE(was_started_with(getpid(), "LOCKSTEP_SET_LATER"));
  EXPECT_FALSE(was_started_with(getpid(), "PAT"));
  EXPECT_TRUE(was_started_with(getpid(), "PATH"));
}

TEST(Process, SeesThatNobodyReadsItsOutput) {
  const WithFullOutput process;
  EXPECT_TRUE(has_unread_output(process.pid()));
  process.read_some();
  EXPECT_FALSE(has_unread_output(process.pid()));
  EXPECT_FALSE(has_unread_output(0)) << "of no process";
}

}  // namespace
}  // namespace lockstep::runtime

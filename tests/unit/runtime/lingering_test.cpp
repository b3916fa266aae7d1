#include "runtime/watch/lingering.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <thread>

#include "support/set_clock.hpp"
#include "support/text.hpp"
#include "unit/runtime/made_up_launcher.hpp"

namespace lockstep::runtime {
namespace {

using support::SetClock;

/// Waits for its end, by a clock on which `look_s` pass at each look.
void await(const MadeUpLauncher& made_up, double look_s) {
  const auto launcher = find_launcher(made_up.hint());
  ASSERT_TRUE(launcher);
  const SetClock clock{{look_s}};
  await_end_of(*launcher, clock);
}

TEST(Lingering, ALauncherThatEndsByItselfIsLeftAlone) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  MadeUpLauncher launcher{[&] {
    close(ends[1]);
    MadeUpLauncher::tell_ready();
    char byte = 0;
    static_cast<void>(!read(ends[0], &byte, 1));  // until the test closes its end
    _exit(7);
  }};
  close(ends[0]);
  const auto found = find_launcher(launcher.hint());
  ASSERT_TRUE(found);
  close(ends[1]);
  await_end_of(*found, SetClock{});
  EXPECT_EQ(WEXITSTATUS(launcher.end()), 7);
  EXPECT_EQ(launcher.said(), "");
}

TEST(Lingering, ALauncherThatStaysIsEndedAndThatIsTold) {
  MadeUpLauncher launcher{MadeUpLauncher::stay};
  await(launcher, 1);
  EXPECT_EQ(WTERMSIG(launcher.end()), SIGTERM);
  EXPECT_TRUE(support::has(launcher.said(), "error: the MPI launcher (mpirun, pid " +
                                                std::to_string(launcher.process()) +
                                                ") has kept running without ranks for 15 s: it is killed\n"));
}

TEST(Lingering, ALauncherThatIsStoppedOrIgnoresThatIsEnded) {
  MadeUpLauncher deaf{[] {
    signal(SIGTERM, SIG_IGN);
    MadeUpLauncher::stay();
  }};
  await(deaf, 1);
  EXPECT_EQ(WTERMSIG(deaf.end()), SIGKILL);
  MadeUpLauncher stopped{MadeUpLauncher::stay};
  stop(stopped.process());
  await(stopped, 1);
  EXPECT_EQ(WTERMSIG(stopped.end()), SIGTERM);
}

/// Expects that await_end_of() does not touch it, though much time passes, while `launcher` has a reason to stay. Then
/// `release` removes that reason.
void expect_patience(MadeUpLauncher& launcher, const std::function<void()>& release) {
  const auto found = find_launcher(launcher.hint());
  ASSERT_TRUE(found);
  const SetClock clock;
  std::thread watch{[&] { await_end_of(*found, clock); }};
  const auto await_looks = [&](long n) {
    for (const long seen = clock.n_looks(); clock.n_looks() < seen + n;) usleep(1000);
  };
  for (int i = 0; i < 3; ++i) {
    clock.advance({10});
    await_looks(6);  // one of four looks for children
  }
  EXPECT_TRUE(launcher.lives());
  release();
  await_looks(6);
  clock.advance({14.9});
  await_looks(6);
  EXPECT_TRUE(launcher.lives());
  clock.advance({0.2});
  watch.join();
  EXPECT_EQ(WTERMSIG(launcher.end()), SIGTERM);
}

TEST(Lingering, ALauncherThatHasAnotherChildIsLeftAlone) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  MadeUpLauncher launcher{[&] {
    signal(SIGCHLD, SIG_IGN);  // no ended child remains
    if (fork() == 0) {
      close(ends[1]);
      char byte = 0;
      _exit(static_cast<int>(read(ends[0], &byte, 1)));
    }
    close(ends[1]);
    MadeUpLauncher::stay();
  }};
  expect_patience(launcher, [&] { close(ends[1]); });
  close(ends[0]);
}

TEST(Lingering, ALauncherWhoseOutputNobodyTakesIsLeftAlone) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_NONBLOCK), 0);
  const std::string page(4096, 'x');
  while (write(ends[1], page.data(), page.size()) > 0) continue;
  MadeUpLauncher launcher{[&] {
    dup2(ends[1], STDOUT_FILENO);
    MadeUpLauncher::stay();
  }};
  expect_patience(launcher, [&] {
    std::string text(page.size(), ' ');
    while (read(ends[0], text.data(), text.size()) > 0) continue;
  });
  close(ends[0]);
  close(ends[1]);
}

TEST(Lingering, OnlyALauncherOfOneJobIsFound) {
  unsetenv("PMIX_NAMESPACE");
  for (const char* const name : {"bash", "prte", "prted", "slurmstepd", "lockstep"}) {
    const MadeUpLauncher other{MadeUpLauncher::stay, name};
    EXPECT_FALSE(find_launcher(other.hint())) << name;
  }
  const MadeUpLauncher daemon{MadeUpLauncher::stay, "prted"};
  setenv("PMIX_NAMESPACE", "prte-node7-12@3", 1);
  EXPECT_FALSE(find_launcher(daemon.hint()));
  setenv("PMIX_NAMESPACE", "prterun-node7-12@1", 1);
  EXPECT_TRUE(find_launcher(daemon.hint()));
  unsetenv("PMIX_NAMESPACE");
  const MadeUpLauncher mpiexec{MadeUpLauncher::stay, "mpiexec.hydra"};
  LauncherHint hint = mpiexec.hint();
  EXPECT_TRUE(find_launcher(hint)->has_all_ranks);
  hint.n_ranks = 4;
  EXPECT_FALSE(find_launcher(hint)->has_all_ranks);
  hint.name = "Slurm srun";
  EXPECT_FALSE(find_launcher(hint));
  hint.name = "";
  EXPECT_FALSE(find_launcher(hint));
}

}  // namespace
}  // namespace lockstep::runtime

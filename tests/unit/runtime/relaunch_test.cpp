#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "runtime/launcher.hpp"

namespace lockstep::runtime {
namespace {

namespace fs = std::filesystem;

/// A launcher that records its arguments and environment, one per line. Its own name is unknown to Lockstep.
class Relaunch : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "lockstep-relaunch-XXXXXX";
    folder_ = mkdtemp(name.data());
    const fs::path launcher = folder_ / "starter";
    std::ofstream{launcher} << "#!/bin/sh\n"
                            << "printf '%s\\n' \"$@\" > '" << (folder_ / "arguments").string() << "'\n"
                            << "env > '" << (folder_ / "environment").string() << "'\necho done\n";
    fs::permissions(launcher, fs::perms::owner_all);
    setenv("LOCKSTEP_MPIEXEC", launcher.c_str(), 1);
    unsetenv("OMPI_MCA_rmaps_base_oversubscribe");
    unsetenv("OMPI_MCA_hwloc_base_binding_policy");
  }
  void TearDown() override {
    unsetenv("LOCKSTEP_MPIEXEC");
    fs::remove_all(folder_);
  }

  /// The lines that the launcher wrote to `file` when a child replaced itself by it.
  [[nodiscard]] std::vector<std::string> relaunch(int n_ranks, std::vector<std::string> words, const char* file,
                                                  int n_threads = 1) const {
    const pid_t child = fork();
    if (child == 0) {
      std::vector<char*> argv;
      for (std::string& word : words) argv.push_back(word.data());
      relaunch_under_mpi(n_ranks, static_cast<int>(argv.size()), argv.data(), {.n_threads = n_threads});
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    std::vector<std::string> lines;
    std::ifstream input{folder_ / file};
    for (std::string line; std::getline(input, line);) lines.push_back(line);
    return lines;
  }

  fs::path folder_;
};

/// A launcher that runs `script`; how this program ends when `signal` comes to it, if there is one, once the script has
/// made the file `ready`.
int end_under(const fs::path& folder, const std::string& script, int signal = 0) {
  const fs::path ready = folder / "ready";
  fs::remove(ready);
  std::ofstream{folder / "starter"} << "#!/bin/sh\n" << script;
  const pid_t child = fork();
  if (child == 0) {
    std::string word = "x";
    char* argv[] = {word.data()};
    relaunch_under_mpi(2, 1, argv, {});
  }
  for (int i = 0; i < 5000 && !fs::exists(ready) && signal != 0; ++i) usleep(10'000);
  if (signal != 0) kill(child, signal);
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST_F(Relaunch, EndsAsTheLauncherDoes) {
  EXPECT_EQ(end_under(folder_, "echo done\nexit 0\n"), 0);
  EXPECT_EQ(end_under(folder_, "echo failed >&2\nexit 1\n"), 3)
      << "LOCKSTEP_MPIEXEC names a program that is not a launcher";
  EXPECT_EQ(end_under(folder_, "echo stopped\nexit 85\n"), 85);
  setenv("PBS_NODEFILE", "/nowhere", 1);
  EXPECT_EQ(end_under(folder_, "echo failed >&2\nexit 1\n"), 1) << "ranks may be on other nodes";
  unsetenv("PBS_NODEFILE");
  EXPECT_EQ(end_under(folder_, "exit 3\n"), 3);
  EXPECT_EQ(end_under(folder_, "kill -KILL $$\n"), 3);
}

// As of LOCKSTEP_MPIEXEC=/bin/false or /bin/true: no rank has said anything.
TEST_F(Relaunch, TellsOfALauncherThatSaysNothing) {
  for (const char* const code : {"0", "1", "77"}) {
    const auto run = [&] { _exit(end_under(folder_, fmt::format("exit {}\n", code))); };
    EXPECT_EXIT(
        run(), testing::ExitedWithCode(3),
        fmt::format("error: the MPI launcher '.*/starter' has ended before a rank has started, with exit code {}\n"
                    "  fix: .*LOCKSTEP_MPIEXEC",
                    code));
  }
}

TEST_F(Relaunch, AsksTheRanksForAnOrderlyEnd) {
  const std::string ready = ": > '" + (folder_ / "ready").string() + "'\n";
  const std::string loop = ready + "for i in $(seq 2000); do sleep 0.05; done\n";
  const std::string in_order = "trap 'exit 1' INT TERM\ntrap 'sleep 0.2; exit 143' USR1\n" + loop;
  EXPECT_EQ(end_under(folder_, in_order, SIGINT), 128 + SIGINT);
  EXPECT_EQ(end_under(folder_, in_order, SIGTERM), 128 + SIGTERM);
  EXPECT_EQ(end_under(folder_, "trap 'exit 3' USR1\n" + loop, SIGINT), 3) << "what fails on the way is told";
}

bool contains(const std::vector<std::string>& lines, const std::string& wanted) {
  return std::find(lines.begin(), lines.end(), wanted) != lines.end();
}

TEST_F(Relaunch, PassesTheArgumentsOnWithoutNproc) {
  const std::string program = fs::read_symlink("/proc/self/exe");
  using Words = std::vector<std::string>;
  const std::string n_flag = relaunch(2, {"x"}, "arguments").at(0);
  EXPECT_EQ(relaunch(2, {"x", "--nproc", "2", "-b", "8 K"}, "arguments"), (Words{n_flag, "2", program, "-b", "8 K"}));
  EXPECT_EQ(relaunch(3, {"x", "-w", "1", "--nproc=3"}, "arguments"), (Words{n_flag, "3", program, "-w", "1"}));
}

TEST_F(Relaunch, BindsWhereThereAreCoresAndOversubscribesElsewhere) {
  const auto few = relaunch(1, {"x"}, "environment");
  EXPECT_TRUE(contains(few, "OMPI_MCA_hwloc_base_binding_policy=core"));
  EXPECT_FALSE(contains(few, "OMPI_MCA_rmaps_base_oversubscribe=1"));
  const auto many = relaunch(100'000, {"x"}, "environment");
  EXPECT_TRUE(contains(many, "OMPI_MCA_rmaps_base_oversubscribe=1"));
  EXPECT_FALSE(contains(many, "OMPI_MCA_hwloc_base_binding_policy=core"));
}

TEST_F(Relaunch, DoesNotBindSeveralThreadsToACore) {
  EXPECT_TRUE(contains(relaunch(1, {"x"}, "environment", 2), "OMPI_MCA_hwloc_base_binding_policy=none"));
}

TEST_F(Relaunch, LeavesTheUsersChoiceAlone) {
  setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 1);
  EXPECT_TRUE(contains(relaunch(1, {"x"}, "environment"), "OMPI_MCA_hwloc_base_binding_policy=none"));
}

TEST_F(Relaunch, MayRunAsRootOnlyAsRoot) {
  EXPECT_EQ(contains(relaunch(1, {"x"}, "environment"), "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"), geteuid() == 0);
}

TEST_F(Relaunch, SaysWhatToInstallWhenThereIsNoLauncher) {
  setenv("LOCKSTEP_MPIEXEC", "/no/such/mpirun", 1);
  std::string word = "x";
  char* argv[] = {word.data()};
  try {
    relaunch_under_mpi(2, 1, argv, {});
  } catch (const core::Error& error) {
    EXPECT_EQ(error.code(), core::ExitCode::system);
    const std::string text = error.what();
    EXPECT_NE(text.find("/no/such/mpirun"), std::string::npos) << text;
    EXPECT_NE(text.find("--nproc"), std::string::npos) << text;
    EXPECT_NE(text.find("openmpi-bin"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace lockstep::runtime

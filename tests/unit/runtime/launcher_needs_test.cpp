#include "runtime/launcher_needs.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "support/text.hpp"

namespace lockstep::runtime {
namespace {

LauncherFacts sound(const std::string& mpi = "Open MPI v4.1.4, package: Debian OpenMPI") {
  return {.launcher = "/usr/bin/mpirun",
          .mpi = mpi,
          .host_name = "node7.cluster.example.org",
          .user = 1000,
          .home = "/home/me",
          .temporary = "/tmp",
          .stack = 8 << 20,
          .open_files = 1024};
}

/// The results of the table for `facts`, in order.
std::vector<core::Error> judge(const LauncherFacts& facts, int n_ranks = 4) {
  std::vector<core::Error> all;
  for (const LauncherNeed& need : launcher_needs())
    if (auto error = need.judge(facts, n_ranks)) all.push_back(*error);
  return all;
}

std::string name_of(std::size_t size) { return std::string(size, 'h'); }

TEST(LauncherNeeds, AreMetHere) {
  EXPECT_TRUE(judge(sound()).empty());
  EXPECT_TRUE(judge(read_launcher_facts()).empty());
  EXPECT_EQ(describe(sound()), "host name of 25 characters, HOME, TMPDIR set, stack 8 MiB, open files 1024");
}

// As for LOCKSTEP_MPIEXEC: a path, or a name that is found in PATH.
TEST(LauncherNeeds, AProgramThatCanBeExecutedIsOne) {
  const auto refused = [](const char* launcher) {
    setenv("LOCKSTEP_MPIEXEC", launcher, 1);
    const std::string refusal = read_launcher_facts().refusal;
    unsetenv("LOCKSTEP_MPIEXEC");
    return refusal;
  };
  EXPECT_EQ(refused("/no/such/mpirun"), "No such file or directory");
  EXPECT_EQ(refused("no-such-mpirun"), "No such file or directory");
  EXPECT_EQ(refused("/"), "Is a directory");
  EXPECT_EQ(refused("/dev/null"), "Permission denied");
  EXPECT_EQ(refused("sh"), "");
}

// Each is a value with which a launcher has ended, or the last one with which it works.
TEST(LauncherNeeds, TellWhatTheLauncherDiesOf) {
  struct Row {
    std::string what;
    std::function<void(LauncherFacts&)> spoil;
    int exit_code;  ///< 0: it works
    std::vector<std::string> says;
  };
  const std::string mpich = "MPICH Version: 4.0.2", five = "Open MPI v5.0.3", two = "Open MPI v2.1.1";
  const Row rows[] = {
      {"56 characters", [](auto& f) { f.host_name = name_of(56); }, 0, {}},
      {"57",
       [](auto& f) { f.host_name = name_of(57); },
       3,
       {"has 57 characters before its first dot", "shorten the host name"}},
      {"64", [](auto& f) { f.host_name = name_of(64); }, 3, {"'" + name_of(64) + "'"}},
      {"with a dot", [](auto& f) { f.host_name = name_of(40) + "." + name_of(20); }, 0, {}},
      {"with its domain",
       [](auto& f) {
         f.host_name = name_of(40) + "." + name_of(20);
         f.keeps_domain = true;
       },
       3,
       {"has 61 characters:", "unset OMPI_MCA_orte_keep_fqdn_hostnames"}},
      {"of Open MPI 5", [&](auto& f) { f = sound(five), f.host_name = name_of(64); }, 0, {}},
      {"of MPICH", [&](auto& f) { f = sound(mpich), f.host_name = name_of(64); }, 0, {}},
      {"a launcher of one's own",
       [](auto& f) {
         f.launcher = "/home/me/start";
         f.host_name = name_of(64);
       },
       0,
       {}},
      {"a launcher that is not there",
       [](auto& f) { f.refusal = "No such file or directory"; },
       3,
       {"cannot start the MPI launcher '/usr/bin/mpirun': No such file or directory", "LOCKSTEP_MPIEXEC"}},
      {"no user entry", [](auto& f) { f.has_user_entry = false; }, 0, {}},
      {"no HOME", [](auto& f) { f.home.reset(); }, 0, {}},
      {"neither",
       [](auto& f) {
         f.has_user_entry = false;
         f.home.reset();
       },
       2,
       {"user 1000 is not in the system's user database", "export HOME="}},
      {"neither, of MPICH",
       [&](auto& f) {
         f = sound(mpich);
         f.has_user_entry = false;
         f.home.reset();
       },
       0,
       {}},
      {"a long TMPDIR", [](auto& f) { f.temporary = "/" + name_of(200); }, 0, {}},
      {"a long TMPDIR of Open MPI 2",
       [&](auto& f) { f = sound(two), f.temporary = "/" + name_of(70); },
       2,
       {"TMPDIR has 71 characters", "107", "export TMPDIR=/tmp"}},
      {"a stack of 256 KiB", [](auto& f) { f.stack = 256 << 10; }, 0, {}},
      {"a stack of 64 KiB", [](auto& f) { f.stack = 64 << 10; }, 3, {"64 KiB", "ulimit -s 8192"}},
      {"of MPICH, too", [&](auto& f) { f = sound(mpich), f.stack = 64 << 10; }, 3, {"64 KiB"}},
      {"files of 64 KiB", [](auto& f) { f.file_size = 64 << 10; }, 0, {}},
      {"files of 1 KiB", [](auto& f) { f.file_size = 1 << 10; }, 3, {"1 KiB: too small", "ulimit -f unlimited"}},
      {"52 files", [](auto& f) { f.open_files = 52; }, 0, {}},
      {"32 files", [](auto& f) { f.open_files = 32; }, 3, {"32 open files", "4 ranks", "ulimit -n 4096"}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    LauncherFacts facts = sound();
    row.spoil(facts);
    const std::vector<core::Error> errors = judge(facts);
    ASSERT_EQ(errors.size(), row.exit_code == 0 ? 0U : 1U);
    if (errors.empty()) continue;
    EXPECT_EQ(core::to_int(errors.front().code()), row.exit_code);
    for (const std::string& words : row.says)
      EXPECT_TRUE(support::has(errors.front().what(), words)) << errors.front().what();
  }
}

}  // namespace
}  // namespace lockstep::runtime

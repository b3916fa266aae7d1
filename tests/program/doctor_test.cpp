// lockstep doctor: what would fail is told with its fix and by the exit code, what was not asked for is not checked,
// and nothing is left behind. How single facts are judged: tests/unit/training/doctor.
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/lockstep_program.hpp"
#include "support/text.hpp"

namespace lockstep::training {
namespace {

namespace fs = std::filesystem;
using support::lockstep_on;

/// A check, and what is said of it.
struct Told {
  std::string arguments;
  std::string check;
  std::string verdict;
  std::vector<std::string> says{};
  int n_ranks = 1;
};

/// What the JSON says of each check, which is as the exit code and the counts are.
std::map<std::string, nlohmann::json> checks_of(const std::string& arguments, int n_ranks) {
  const support::Ended ended = lockstep_on(support::words_of("doctor --json - " + arguments), n_ranks);
  EXPECT_EQ(ended.err, "");
  const auto document = nlohmann::json::parse(ended.out, nullptr, false);
  if (document.is_discarded()) return {};
  std::map<std::string, nlohmann::json> checks;
  std::map<std::string, int> counts;
  for (const auto& check : document["checks"]) {
    EXPECT_TRUE(checks.emplace(check["name"], check).second) << check["name"];
    ++counts[check["verdict"]];
  }
  for (const auto& [verdict, n] : document["counts"].items()) EXPECT_EQ(n, counts[verdict]) << verdict;
  EXPECT_EQ(document["would_fail"], counts["fail"] > 0);
  EXPECT_EQ(ended.exit_code, counts["fail"] > 0 ? 1 : 0);
  EXPECT_EQ(document["meta"]["ranks"], n_ranks);
  return checks;
}

void expect_told(const Told& told) {
  SCOPED_TRACE(told.arguments + ": " + told.check);
  auto checks = checks_of(told.arguments, told.n_ranks);
  const auto& check = checks[told.check];
  ASSERT_TRUE(check.is_object());
  EXPECT_EQ(check["verdict"], told.verdict) << check;
  const std::string text = check["seen"].get<std::string>() + "\nfix: " + check["fix"].get<std::string>();
  for (const std::string& words : told.says) EXPECT_TRUE(support::has(text, words)) << words << " is not in " << text;
}

/// With a set d, and one of other samples.
class Doctor : public support::InFolder {
 protected:
  Doctor() {
    forget_batch();
    for (const char* const set : {"digits --out d --samples 500", "images --out other --samples 100 --classes 4"})
      support::expect_done(lockstep_on, std::string{"shard synth "} + set);
  }
  ~Doctor() override { forget_batch(); }
  static void forget_batch() {
    for (const char* const variable : {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "PBS_NODEFILE", "NCCL_IB_DISABEL"})
      unsetenv(variable);
  }
};

TEST_F(Doctor, LooksAtWhatItIsToldOfAndLeavesNothing) {
  fs::create_directory("runs");
  const auto before = support::files_here();
  const std::string usual = "--data d --val d --checkpoints runs/new --recipe mnist_cnn --n-checkpoints 3";
  for (const int n_ranks : {1, 2}) {
    auto checks = checks_of(usual + " --expect-ranks " + std::to_string(n_ranks), n_ranks);
    for (const char* const check :
         {"launcher", "recipe", "data", "read speed", "classes", "checkpoints", "file locks", "room", "same program"})
      EXPECT_EQ(checks[check]["verdict"], "ok") << checks[check];
  }
  EXPECT_TRUE(before == support::files_here());
}

// The page of all checks knows each of them.
TEST_F(Doctor, IsDocumented) {
  std::ostringstream page;
  page << std::ifstream{LOCKSTEP_DOCTOR_PAGE}.rdbuf();
  std::istringstream lines{page.str()};
  std::string rows;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("|")) rows += line;
  const auto checks = checks_of("", 1);
  EXPECT_GT(checks.size(), 25U);
  for (const auto& [name, check] : checks) EXPECT_TRUE(support::has(rows, "`" + name + "`")) << name;
}

TEST_F(Doctor, TellsWhatWouldFail) {
  fs::copy("d", "cut");
  fs::resize_file("cut/train-00000.h5", fs::file_size("cut/train-00000.h5") - 1);
  fs::create_directory("hung");
  ASSERT_EQ(mkfifo("hung/manifest.json", 0600), 0);
  write("r.toml", "# four lanes\nmodel = \"mnist_cnn\"\ndeterministic = true\nlanes = 4\n");

  const Told table[] = {
      {"", "launcher", "ok", {"no launcher, 1 rank on 1 node"}},
      {"", "data", "skipped", {"not checked: --data SET is not given"}},
      {"--expect-ranks 4",
       "launcher",
       "fail",
       {"3 ranks on 1 node instead of the 4 of --expect-ranks", "the launcher of"},
       3},
      {"--data nosuch", "data", "fail", {"cannot read 'nosuch/manifest.json'", "check the spelling"}},
      {"--data d --val other", "classes", "fail", {"10 classes in --data, 4 in --val"}},
      {"--data cut", "data", "fail", {"cut/train-00000.h5"}},
      {"--data hung", "data", "fail", {"it is not a regular file"}},
      {"--checkpoints /proc/nosuch",
       "checkpoints",
       "fail",
       {"cannot write in '/proc'", "name a folder on a file system that all nodes may write to"}},
      {"--checkpoints /proc/nosuch", "file locks", "skipped"},
      {"--data d --recipe mnist_cnn --checkpoints . --n-checkpoints 1000000",
       "room",
       "fail",
       {"needed for 1000000 checkpoints"},
       3},
      {"--data d --recipe r.toml", "recipe", "fail", {}, 3},
      {"--device host", "gpus", "skipped", {"the job computes on the host"}, 2},
  };
  for (const Told& told : table) expect_told(told);
  if (!fs::exists("/dev/nvidiactl")) expect_told({"--device cuda", "gpus", "fail", {}, 2});
}

TEST_F(Doctor, ReadsTheEnvironment) {
  setenv("SLURM_NTASKS", "5", 1);
  expect_told({"", "launcher", "note", {"no launcher, so 1 rank; Slurm was asked for 5 tasks"}});
  unsetenv("SLURM_NTASKS");
  write("nodes", "a\na\nb\n");
  setenv("PBS_NODEFILE", "nodes", 1);
  expect_told({"", "launcher", "note", {"PBS_NODEFILE has 3 lines"}});
  ASSERT_EQ(mkfifo("fifo", 0600), 0);
  for (const char* const hostile : {"fifo", "/dev/zero", "."}) {
    setenv("PBS_NODEFILE", hostile, 1);
    expect_told({"", "launcher", "warning", {"PBS_NODEFILE: cannot read '", "unset PBS_NODEFILE"}});
  }
  setenv("PBS_NODEFILE", "not_there", 1);
  expect_told({"", "launcher", "ok", {}});
  setenv("NCCL_IB_DISABEL", "1", 1);
  expect_told({"", "environment", "warning", {"NCCL_IB_DISABEL", "NCCL_IB_DISABLE"}});
}

TEST_F(Doctor, RefusesBadInput) {
  for (const std::string flags :
       {"--device gpu", "--expect-ranks 0", "--recipe nosuch", "--n-checkpoints x", "--nosuch", "word",
        "--recipe mnist_cnn", "--val d", "--n-checkpoints 5", "--n-checkpoints 5 --checkpoints .",
        "--n-checkpoints 5 --recipe toy", "--json no/j.json"})
    expect_refused(lockstep_on, {"doctor " + flags});
}

}  // namespace
}  // namespace lockstep::training

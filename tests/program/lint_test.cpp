// lockstep lint: defects of the kind that tutorials' job scripts have are named by line, clean scripts pass.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <sstream>

#include "support/lockstep_program.hpp"
#include "support/text.hpp"

namespace lockstep::training {
namespace {

namespace fs = std::filesystem;
using support::Ended;
using support::expect_told;
using support::lockstep_on;

/// With the scripts of the folder beside this file.
class Lint : public support::InFolder {
 protected:
  Lint() {
    fs::copy(LOCKSTEP_TEST_SCRIPTS, ".", fs::copy_options::recursive);

    files_ = support::files_here();
  }
  ~Lint() override { unsetenv("LOCKSTEP_SITES"); }

  std::map<std::string, std::string> files_;
};

Ended lint(const std::string& line) { return lockstep_on(support::words_of("lint " + line)); }

/// A line of the output for each comment "#! SEVERITY PATTERN" of `script`, which tells of the line after it, and no
/// other errors or warnings.
void expect_lines(const Ended& ran, const std::string& name, const std::string& script) {
  std::istringstream lines{script};
  int number = 0;
  int n_bad = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (!line.starts_with("#! ")) continue;
    const std::size_t space = line.find(' ', 3);
    const std::string severity = line.substr(3, space - 3);
    n_bad += severity != "note" ? 1 : 0;
    const std::regex told{name + ":" + std::to_string(number + 1) + ": " + severity + ": .*" + line.substr(space + 1)};
    EXPECT_TRUE(std::regex_search(ran.out, told)) << line << "\n" << ran.out;
  }
  const std::regex bad{":[0-9]+: (error|warning): "};
  EXPECT_EQ(std::distance(std::sregex_iterator{ran.out.begin(), ran.out.end(), bad}, {}), n_bad) << ran.out;
}

TEST_F(Lint, NamesEachDefectByItsLine) {
  int n = 0;
  for (const auto& [path, script] : files_) {
    if (!support::has(script, "\n#! ")) continue;
    ++n;
    const std::string name = path.substr(2);
    const Ended ran = lint(name);
    EXPECT_EQ(ran.exit_code, 1) << name;
    EXPECT_EQ(ran.err, "");
    expect_lines(ran, name, script);
  }
  EXPECT_GE(n, 6);
}

// What bash cannot read is read without running it.
TEST_F(Lint, RunsNothing) {
  setenv("BASH_ENV", fs::absolute("bash_env").c_str(), 1);
  write("bash_env", "touch executed\n");
  EXPECT_EQ(lint("generic/broken.sh").exit_code, 1);
  unsetenv("BASH_ENV");
  EXPECT_FALSE(fs::exists("executed"));
}

TEST_F(Lint, CleanScriptsGiveTheLastLineOnly) {
  const std::string clean = ": 0 errors, 0 warnings, 0 notes\n";
  const Ended one = lint("delta/clean.sbatch");
  EXPECT_EQ(one.exit_code, 0);
  EXPECT_EQ(one.out, "1 script checked for delta" + clean);
  expect_told(lint("delta/clean.sbatch derecho/clean.pbs"), 0,
              {"derecho/clean.pbs:3: note: edit this line",
               "2 scripts checked for delta, derecho: 0 errors, 0 warnings, 1 note\n"});
  write("other.csh", "#!/bin/csh\nif (1) then\n");
  EXPECT_EQ(lint("other.csh").exit_code, 0);
  std::string commands;
  for (const std::string name : {"train", "shard", "ckpt", "doctor", "lint"}) commands += "lockstep " + name + "\n";
  write("generic/commands.sh", commands);
  EXPECT_EQ(lint("generic/commands.sh").exit_code, 0);
}

// A pattern of extglob is an error to bash -n alone, as that executes no shopt.
TEST_F(Lint, PatternsAreReadAsTheScriptHasThem) {
  const std::string body = "rm -f !(*.sh)x\ncase $1 in\n  !(a|b)) echo other ;;\nesac\n";
  for (const std::string before : {"shopt -s extglob\n", "shopt -qs nullglob extglob\n", ". ./lib.sh\n"}) {
    write("generic/patterns.sh", "#!/bin/bash\n" + before + body);
    expect_told(lint("generic/patterns.sh"), 0, {": 0 errors, 0 warnings, "});
  }
  write("generic/patterns.sh", "#!/bin/bash\nshopt -u extglob\n" + body);
  expect_told(lint("generic/patterns.sh"), 1, {"generic/patterns.sh:3: error: syntax error near"});
}

TEST_F(Lint, TheSiteIsSaidThenMarkedThenSourcedThenTheFolder) {
  std::string big = files_["./derecho/clean.pbs"];
  big =
      std::regex_replace(std::regex_replace(big, std::regex{"CHANGE_ME"}, "me"), std::regex{"select=2"}, "select=2000");
  const auto sourcing = [&](const std::string& library) {
    return std::regex_replace(big, std::regex{"cd .*\n"},
                              "$&. \"$${LOCKSTEP_ROOT:?}/share/lockstep/batch/lib/" + library + ".sh\" gpu\n");
  };
  write("generic/big.pbs", big);
  write("elsewhere/big.pbs", big);
  write("generic/marked.pbs", "#!/bin/bash\n# lockstep: site=derecho\n" + big.substr(big.find('\n') + 1));
  write("elsewhere/derecho.pbs", sourcing("derecho"));
  write("elsewhere/generic-pbs.pbs", sourcing("generic-pbs"));
  EXPECT_EQ(lint("generic/big.pbs").exit_code, 0);
  expect_told(lint("--site derecho generic/big.pbs"), 1, {"at most 82"});
  EXPECT_EQ(lint("generic/marked.pbs").exit_code, 1);
  EXPECT_EQ(lint("--site generic generic/marked.pbs").exit_code, 0);
  expect_told(lint("elsewhere/derecho.pbs"), 1, {"at most 82", "1 script checked for derecho: "});
  expect_told(lint("elsewhere/generic-pbs.pbs"), 0, {"1 script checked for generic: 0 errors, 0 warnings, 0 notes\n"});
  expect_told(lint("elsewhere/big.pbs"), 0,
              {"elsewhere/big.pbs:1: note: the cluster is unknown, ", "fix: --site S: one of delta, "});
}

TEST_F(Lint, WritesTheSameJsonToAFileAndToStdout) {
  const std::string both = "delta/slurm_script.slurm delta/clean.sbatch --json ";
  expect_told(lint(both + "f.json"), 1, {"2 scripts checked for delta: "});
  const Ended ran = lint(both + "-");
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_EQ(ran.out, support::files_here()["./f.json"]);
}

TEST_F(Lint, RefusesBadInput) {
  write("marked", "#!/bin/bash\n# lockstep: site=nowhere\n");
  write("binary", std::string{"ELF\0\1", 5});
  const support::Refused table[] = {
      {"lint", {"FILE"}},
      {"lint not_there.sbatch", {"not_there.sbatch"}},
      {"lint --site detla delta/clean.sbatch", {"did you mean 'delta'", "hipergator"}},
      {"lint marked", {"marked:2"}},
      {"lint binary", {"not a text file"}},
      {"lint delta", {"delta"}},
      {"lint /proc/self/mem", {"/proc/self/mem", "copy its content to a file first"}},
      {"lint /proc/self/status", {"/proc/self/status", "copy its content to a file first"}},
      {"lint delta/clean.sbatch --json no/such/folder/f.json", {"no/such/folder"}},
  };
  for (const support::Refused& refused : table) expect_refused(lockstep_on, refused);
}

TEST_F(Lint, TakesSitesOfOnesOwn) {
  setenv("LOCKSTEP_SITES", "sites.toml", 1);
  const auto with = [](const std::string& sites) { write("sites.toml", sites); };
  with("[delta]\ntitle = \"Mine\"\n[delta.partition]\ngpuA100x4 = {most = 1}\n");
  expect_told(lint("delta/clean.sbatch"), 1, {"2 nodes"});
  with("[mine]\ntitle = \"Mine\"\n");
  expect_told(lint("delta/clean.sbatch"), 0, {"1 script checked for generic: "});
  with("[here]\ntitel = \"x\"\n");
  expect_refused(lockstep_on, {"lint delta/clean.sbatch", {"did you mean 'title'"}});
  with("");
  expect_refused(lockstep_on, {"lint --site delta delta/clean.sbatch", {"expected: ", "generic"}});
  with("[mine]\ntitle = \"K\303\266ln\"\n");
  expect_refused(lockstep_on, {"lint delta/clean.sbatch", {"sites.toml:2"}});
}

}  // namespace
}  // namespace lockstep::training

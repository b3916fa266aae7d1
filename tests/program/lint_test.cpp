// lockstep lint: defects of the kind that tutorials' job scripts have are named by line, clean scripts pass.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <sstream>

#include "runtime/output_of.hpp"
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

Ended lint_with_shellcheck(const std::string& line) { return lockstep_on(support::words_of("lint " + line)); }
/// What lint itself finds, on any machine.
Ended lint(const std::string& line) { return lint_with_shellcheck("--no-shellcheck " + line); }

/// A program in the folder bin.
void write_program(const std::string& name, const std::string& script) {
  support::InFolder::write("bin/" + name, "#!/bin/sh\n" + script);
  fs::permissions("bin/" + name, fs::perms::owner_all);
}

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

struct Remarks {
  const char* of;        ///< what ShellCheck does, and prints about $file
  const char* script;    ///< in generic/
  int exit_code;         ///< of lint
  std::string says;      ///< lint, at its end
  std::string not_says;  ///< lint, anywhere
};

TEST_F(Lint, ShowsWhatShellCheckFinds) {
  write("generic/job.sh", "#!/bin/bash\necho a\necho b\n");
  write("generic/list.sh", "#!/bin/bash\nnodes=( a b )\nlist=($nodes)\n");
  write("generic/job.csh", "#!/bin/csh\nif (1) then\n");
  const support::Variables path{{{"PATH", fs::absolute("bin").string() + ":" + std::getenv("PATH")}}};
  const std::string clean = "1 script checked for generic: 0 errors, 0 warnings, 0 notes";
  const std::string failed = clean + "; ShellCheck failed on 1 script\n";
  const Remarks table[] = {
      {"exit 0", "job.sh", 0, clean + "\n", "note:"},
      {"printf '%s:2:1: warning: Use cd: or exit. [SC2164]\\n' \"$file\"; exit 1", "job.sh", 0,
       "generic/job.sh:2: note: Use cd: or exit (ShellCheck SC2164)\n"
       "1 script checked for generic: 0 errors, 0 warnings, 1 note\n",
       "exit."},
      {"printf '%s:3:1: error: Double quote [arrays]. [SC2068]\\n' \"$file\"; exit 1", "job.sh", 1,
       "generic/job.sh:3: error: Double quote [arrays] (ShellCheck SC2068)\n"
       "1 script checked for generic: 1 error, 0 warnings, 0 notes\n",
       "failed"},
      {"printf '%s:3:7: warning: Index. [SC2128]\\n%s:3:1: warning: Quote. [SC2086]\\n' \"$file\" \"$file\"; exit 1",
       "list.sh", 1, ": 1 error, 0 warnings, 1 note\n", "SC2128"},
      {"printf '%s:2:7: warning: Index. [SC2128]\\n' \"$file\"; exit 1", "list.sh", 1,
       ": 1 error, 0 warnings, 1 note\n", "failed"},
      {"printf '%s:3:1: error: for. [SC1073]\\n' \"$file\"; exit 1", "broken.sh", 1, " 0 notes\n", "SC1073"},
      {"yes \"$file:2:1: warning: a. [SC2164]\" | head -n 300; exit 1", "job.sh", 0,
       ": note: more than 100 findings of ShellCheck: the others are left out\n"
       "1 script checked for generic: 0 errors, 0 warnings, 101 notes\n",
       "failed"},
      {"exit 1", "job.csh", 0, clean + "\n", "failed"},  // is not asked
      {"exit 2", "job.sh", 0, failed, "note:"},
      {"kill -9 $$", "job.sh", 0, failed, "note:"},
      {"echo what; exit 1", "job.sh", 0, failed, "note:"},
      {"printf '%s:2:1: warning: a. [SC2164]\\nwhat\\n' \"$file\"; exit 1", "job.sh", 0, failed, "note:"},
      {"printf '%s:x:1: warning: a. [SC2164]\\n' \"$file\"; exit 1", "job.sh", 0, failed, "note:"},
      {"printf '%s:2]\\n%s: [SC2]\\n' \"$file\" \"$file\"; exit 1", "job.sh", 0, failed, "note:"},
      {"yes \"$file:2:1: warning: a. [SC2164]\" | head -n 100000", "job.sh", 0, failed, "note:"},
  };
  for (const Remarks& remarks : table) {
    write_program("shellcheck", std::string{"for file; do :; done\n"} + remarks.of + "\n");
    const Ended ran = lint_with_shellcheck(std::string{"generic/"} + remarks.script);
    EXPECT_EQ(ran.exit_code, remarks.exit_code) << remarks.of;
    EXPECT_TRUE(ran.out.ends_with(remarks.says)) << remarks.of << "\n" << ran.out;
    EXPECT_EQ(ran.out.find(remarks.not_says), std::string::npos) << remarks.of << "\n" << ran.out;
    EXPECT_EQ(ran.err, "");
  }
  write_program("shellcheck", "for file; do :; done\nprintf '%s:2:1: error: a. [SC2164]\\n' \"$file\"\nexit 1\n");
  EXPECT_EQ(lint("generic/job.sh").out, clean + "\n");
  expect_told(lint_with_shellcheck("generic/job.sh --json -"), 1, {"\"shellcheck\": \"ran\"", "a (ShellCheck SC2164)"});
  expect_told(lint("generic/job.sh --json -"), 0, {"\"shellcheck\": \"off\""});
  write_program("timeout", "printf a >> asked\nexit 124\n");  // as if ShellCheck did not end
  EXPECT_EQ(lint_with_shellcheck("generic/job.sh generic/job.sh generic/job.sh").out,
            "3 scripts checked for generic: 0 errors, 0 warnings, 0 notes; ShellCheck gave no answer in 10 s\n");
  EXPECT_EQ(support::files_here()["./asked"], "a") << "once for all scripts";
  expect_told(lint_with_shellcheck("generic/job.sh generic/job.sh --json -"), 0,
              {"\"shellcheck\": \"late\"", "\"shellcheck\": \"off\""});
}

TEST_F(Lint, SaysThatThereIsNoShellCheck) {
  write_program("env", "exec /usr/bin/env \"$@\"\n");
  write_program("sh", "exec /bin/sh \"$@\"\n");
  write("generic/job.sh", "#!/bin/bash\necho a\n");
  const support::Variables path{{{"PATH", fs::absolute("bin").string()}}};
  expect_told(lint_with_shellcheck("generic/job.sh"), 0, {": 0 errors, 0 warnings, 0 notes; without ShellCheck\n"});
  expect_told(lint_with_shellcheck("generic/job.sh --json -"), 0, {"\"shellcheck\": \"missing\""});
}

TEST_F(Lint, UnderstandsTheShellCheckOfThisMachine) {
  if (!runtime::output_of({"sh", "-c", "command -v shellcheck"}, {60})) GTEST_SKIP() << "there is no shellcheck";
  write("generic/slips.sh", "#!/bin/bash\ncd /data/set\n./x $@\n");
  expect_told(lint_with_shellcheck("generic/slips.sh"), 1,
              {"generic/slips.sh:2: note: ", "(ShellCheck SC2164)\n",
               "generic/slips.sh:3: error: ", "(ShellCheck SC2068)\n", ": 1 error, 0 warnings, 1 note\n"});
  expect_told(lint_with_shellcheck("delta/clean.sbatch"), 0, {"checked for delta: 0 errors, 0 warnings, 0 notes\n"});
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

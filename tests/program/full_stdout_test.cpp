// A stdout that takes nothing costs no work: what goes elsewhere gets there, then exit code 3 tells.
#include <cstdio>
#include <filesystem>

#include "support/lockstep_program.hpp"
#include "support/text.hpp"

namespace lockstep::training {
namespace {

namespace fs = std::filesystem;

/// While one lives, stdout is full.
class Full {
 public:
  Full() : before_{stdout} { stdout = std::fopen("/dev/full", "we"); }
  ~Full() {
    std::fclose(stdout);
    stdout = before_;
  }
  Full(const Full&) = delete;
  Full& operator=(const Full&) = delete;

 private:
  std::FILE* before_;
};

class FullStdout : public support::InFolder {
 protected:
  static std::string file(const std::string& path) { return support::files_here()["./" + path]; }
};

void expect_told(const std::string& line) {
  SCOPED_TRACE(line);
  const support::Ended ended = [&line] {
    const Full full;
    return support::lockstep_on(support::words_of(line));
  }();
  support::expect_told(ended, 3, {"error: cannot write to stdout: No space left", "fix: "});
  EXPECT_EQ(ended.err.find("error: "), ended.err.rfind("error: ")) << ended.err;
}

TEST_F(FullStdout, IsToldByEveryCommand) {
  support::expect_done(support::lockstep_on, "train toy 2 --save-every 1 --run-dir r");
  write("job.sh", "#!/bin/bash\necho\n");
  for (const std::string line :
       {"--help", "--version", "train --help", "train toy --print-config", "train toy --dry-run",
        "train digits --synthetic-samples 128 --evaluate-only --run-dir e", "ckpt ls r", "ckpt cat r/weights.h5",
        "ckpt verify r", "lint job.sh", "doctor", "doctor --json -"})
    expect_told(line);
}

TEST_F(FullStdout, CostsNoTraining) {
  support::expect_done(support::lockstep_on, "train toy 2 --save-weights right.h5 --run-dir right");
  for (const std::string flags : {"", " --digest", " --compat", " --profile"}) {
    expect_told("train toy 2 --save-weights w.h5 --run-dir full" + flags);
    EXPECT_TRUE(support::has(file("full/status.json"), R"("state": "finished")"));
    EXPECT_TRUE(file("w.h5") == file("right.h5")) << "other weights than with a stdout";
    fs::remove_all("full");
    fs::remove("w.h5");
  }
}

}  // namespace
}  // namespace lockstep::training

// lockstep shard bench: every stage is measured, for every order, cold and warm, from the set or a copy. No figure is
// judged.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "runtime/interrupt.hpp"
#include "support/lockstep_program.hpp"
#include "support/text.hpp"

namespace lockstep::training {
namespace {

namespace fs = std::filesystem;
using support::Ended;
using support::expect_done;
using support::expect_told;
using support::lockstep_on;
using support::words_of;
using Json = nlohmann::json;

/// With a set of digits.
class ShardBench : public support::InFolder {
 protected:
  ShardBench() { expect_done(lockstep_on, "shard synth digits --out d --samples 600 --chunk-size 64K"); }

  static void flip(const std::string& path) {
    std::string bytes = support::files_here()["./" + path];
    bytes.at(100000) = static_cast<char>(bytes[100000] ^ 1);
    write(path, bytes);
  }
  static Ended measured(const std::string& words, int n_ranks = 1) {
    Ended ran = expect_done(lockstep_on, "shard bench " + words, n_ranks);
    expect_told(ran, 0, {"memory copy", "pread alone", "read, check", "augment alone", "whole path", "Bottleneck: "});
    return ran;
  }
};

/// That of b.json.
void expect_figures(int n_ranks, bool is_cold) {
  const Json json = Json::parse(support::files_here()["./b.json"]);
  EXPECT_TRUE(json["complete"]);
  EXPECT_EQ(json["meta"]["ranks"], n_ranks);
  EXPECT_EQ(json["meta"]["options"]["cold"], is_cold);
  std::string stages;
  for (const Json& stage : json["stages"]) {
    stages += stage["stage"].get<std::string>() + " ";
    EXPECT_EQ(stage["repeats"], 7);
    EXPECT_LT(0, stage["samples_per_s_p50_low"]);
    EXPECT_LE(stage["samples_per_s_p50_low"], stage["samples_per_s_p50"]);
    EXPECT_LE(stage["samples_per_s_p50"], stage["samples_per_s_p50_high"]);
  }
  EXPECT_EQ(stages, "copy pread read augment loader ");
  EXPECT_EQ(json["loader"]["crc_failures"], 0);
  EXPECT_TRUE(json["time_us_per_sample"].contains(json["binds"].get<std::string>())) << json;
}

TEST_F(ShardBench, MeasuresEveryStage) {
  measured("d --seconds 0.1 --json b.json", 2);
  expect_figures(2, false);
  expect_told(measured("d --cold --seconds 0.1 --layout nhwc --dtype bfloat16 --json b.json"), 0, {"not read before"});
  expect_figures(1, true);
  measured("d --epochs 2 --batch 100");
}

TEST_F(ShardBench, MeasuresEveryOrderAndKind) {
  expect_done(lockstep_on, "shard pack d --out zstd --compress zstd");
  for (const std::string order : {"torch", "blocked", "sequential"})
    measured("zstd --order " + order + " --seconds 0.05 --cache none --threads 1 --augment flip,normalize:0.5:0.25");
  expect_done(lockstep_on, "shard synth ratings --out r --samples 2000");
  measured("r --seconds 0.05");
}

// Damage of the copy is noticed where nothing else is read, and mended by the next run. What a copy is: ranks_data.
TEST_F(ShardBench, ReadsTheCopy) {
  const std::string staged = "d --stage local --cache none --seconds 0.05";
  measured(staged, 2);
  const std::string copy = fs::directory_iterator { "local" } -> path().string();
  const std::string shard = copy + "/train-00000.h5";
  flip(shard);
  measured(staged);
  auto files = support::files_here();
  EXPECT_TRUE(files["./" + shard] == files["./d/train-00000.h5"]);
  EXPECT_EQ(std::distance(fs::directory_iterator{"local"}, {}), 1);
  write("file", "");
  expect_refused(lockstep_on, {"shard bench d --stage file/local", {"--stage"}});
}

// It ends as elsewhere, in the middle of a stage.
TEST_F(ShardBench, DamageEndsIt) {
  flip("d/train-00000.h5");
  for (const int n_ranks : {1, 2}) {
    const Ended ran = lockstep_on(words_of("shard bench d --cache none --seconds 0.1"), n_ranks);
    expect_told(ran, 1, {"error: ", "CRC32C"});
    EXPECT_EQ(ran.err.find("error: "), ran.err.rfind("error: ")) << ran.err;
  }
}

// Not only the next one begins no more: a stage of a thousand seconds ends.
TEST_F(ShardBench, ASignalEndsAStage) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGINT, SIG_DFL);  // or it would stay ignored
    runtime::catch_interrupts();
    raise(SIGINT);
    _exit(lockstep_on(words_of("shard bench d --seconds 7000")).exit_code);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
}

}  // namespace
}  // namespace lockstep::training

// lockstep train where numbers are not finite or bytes have changed: the step, rank, layer, sample or file is named,
// and what is kept of the step is enough for --replay, which makes it again on one rank.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "io/digest.hpp"
#include "runtime/session.hpp"
#include "support/lockstep_program.hpp"
#include "support/sanitized.hpp"
#include "support/text.hpp"
#include "unit/io/temporary_folder.hpp"

namespace lockstep::training {
namespace {

namespace fs = std::filesystem;
using support::Ended;
using support::expect_told;
using support::has;
using support::lockstep_on;
using support::words_of;

class BadStep : public support::InFolder {
 protected:
  static std::string file(const std::string& path) { return support::files_here()["./" + path]; }
};

Ended done(const std::string& line, int n_ranks = 1) { return support::expect_done(lockstep_on, line, n_ranks); }

/// Exit code 1 with one message.
void expect_failed(const std::string& line, int n_ranks, const std::vector<std::string>& says) {
  SCOPED_TRACE(line);
  const Ended ended = lockstep_on(words_of(line), n_ranks);
  expect_told(ended, 1, says);
  EXPECT_EQ(ended.err.find("error: "), ended.err.rfind("error: ")) << ended.err;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator{folder}) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

/// A table of `n` samples, the second input of which is `value` in row `row`.
std::string table(int n, int row, const std::string& value) {
  std::string text = "a,b,y\n";
  for (int i = 0; i < n; ++i) text += "0." + std::to_string(i + 1) + "," + (i == row ? value : "0.5") + ",0.25\n";
  return text;
}

const std::string digits = "train digits --synthetic-samples 128 --batch 32 ";

// The same step, the same samples, and parameters from before it.
TEST_F(BadStep, IsMadeAgainOnOneRankAfterAnyRanks) {
  const std::pair<int, std::string> runs[] = {{1, ""}, {3, ""}, {2, "--deterministic"}, {4, "--precision bf16"}};
  for (const auto& [n_ranks, flags] : runs) {
    fs::remove_all("r");

    expect_failed(digits + "--lr 1e30 --run-dir r " + flags, n_ranks,
                  {"error: the loss of step 2 is not finite, at a learning rate of 1e+30 (rank ", ", first in ",
                   "info: to repeat that step on one rank: lockstep train --replay r/bad-step-000000002\n"});
    EXPECT_FALSE(fs::exists("r/weights.h5"));
    done("ckpt verify r/bad-step-000000002");
    expect_told(done("train --replay r/bad-step-000000002"), 0,
                {"step      2 of the run, 2 of epoch 1; learning rate 1e+30; ", "\nseen by   rank ",
                 " of " + std::to_string(n_ranks) + " on ", ": first in ", ", by samples ",
                 "\ndata      all numbers of 32 samples are finite\n",
                 "\nloss      nan over 32 samples, first not finite in ", "\ngradient  not finite, first in ",
                 "\nsamples   not finite on their own: ", "\nverdict   not finite here either\n"});
  }
}

TEST_F(BadStep, IsMadeAgainAfterARunThatWentOn) {
  done(digits + "--max-steps 2 --save-every 1 --run-dir part");
  expect_failed(digits + "--lr 1e30 --resume part --resume-anyway --run-dir r", 1,
                {"error: the loss of step 4 is not finite"});
  expect_told(done("train --replay r/bad-step-000000004"), 0,
              {"step      4 of the run, 4 of epoch 1; learning rate 1e+30; ", "\nseen by   rank 0 of 1 on "});
}

// Other ranks see layers stop being finite, which follows from it.
TEST_F(BadStep, IsSeenByOwnersOfTheParameterThatIsTheCause) {
  for (const int n_ranks : {1, 3}) {
    fs::remove_all("r");
    expect_failed("train toy --lr 1e10 --run-dir r", n_ranks, {", first in parameter "});
    for (const std::string& name : names_in("r")) {
      if (!name.starts_with("bad-step-")) continue;
      std::istringstream lines{done("train --replay r/" + name).out};
      int n_seen = 0;
      for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with("seen by ")) continue;
        EXPECT_TRUE(has(line, "first in parameter ")) << line;
        ++n_seen;
      }
      EXPECT_GT(n_seen, 0);
    }
  }
}

// As where memory was at fault: here, of other parameters than were there.
TEST_F(BadStep, MayBeFiniteHere) {
  expect_failed(digits + "--lr 1e30 --run-dir bad", 1, {});
  done(digits + "--max-steps 1 --save-every 1 --run-dir good");
  const std::string good = "good/checkpoints/step-000000001", bad = "bad/bad-step-000000002";
  nlohmann::json index = nlohmann::json::parse(file(good + "/index.json"));
  const nlohmann::json recipe = index["content"]["recipe"];
  index["content"] = nlohmann::json::parse(file(bad + "/index.json"))["content"];
  index["content"]["recipe"] = recipe;
  write("finite/index.json", index.dump());
  write("finite/DONE", io::digest_of_file("finite/index.json") + "\n");
  fs::copy_file(good + "/rank-00000.h5", "finite/rank-00000.h5");

  const Ended ended = lockstep_on({"train", "--replay", "finite"});
  expect_told(ended, 1, {" over 32 samples\n", "\ngradient  finite, norm ", "\nverdict   finite here: "});
  EXPECT_EQ(ended.err, "");
}

TEST_F(BadStep, RefusesWhatCannotBeMadeAgain) {
  done("train toy --max-steps 1 --save-every 1 --run-dir good");
  write("t.csv", table(64, 40, "inf"));
  done("shard import csv t.csv --out d");
  expect_failed("train toy --data d --val-split '' --max-steps 8 --batch 16 --run-dir r", 2, {});
  const std::string bad = [] {
    for (const std::string& name : names_in("r"))
      if (name.starts_with("bad-step-")) return "r/" + name;
    return std::string{};
  }();

  const support::Refused rows[] = {
      {"train --replay good/checkpoints/step-000000001", {"does not hold a step that was not finite"}},
      {"train --replay nowhere", {"'nowhere' does not exist"}},
      {"train --replay " + bad + " --nproc 2", {"nproc"}},
      {"train --replay " + bad, {"2 ranks were started"}, 2},
      {"train digits --replay " + bad, {"unexpected argument 'digits'"}},
      {"train --replay " + bad + " --data nowhere", {"nowhere"}, 1},
  };
  for (const support::Refused& refused : rows) expect_refused(lockstep_on, refused);

  // The samples are named; what was learned before that step trains on.
  expect_told(done("train --replay " + bad), 0,
              {"\ndata      not finite: samples 40\n", "\nsamples   not finite on their own: 40\n"});
  write("finite.csv", table(64, 40, "2.5"));
  done("shard import csv finite.csv --out e");
  done("train toy --data e --val-split '' --max-steps 3 --batch 16 --run-dir after --init-from " + bad);

  std::string bytes = file(bad + "/rank-00000.h5");
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x5a);
  write(bad + "/rank-00000.h5", bytes);
  expect_failed("train --replay " + bad, 1, {"rank-00000.h5"});
}

// All ranks share the running statistics.
TEST_F(BadStep, IsKeptWithTheRunningStatisticsFromBeforeIt) {
  expect_failed(
      "train cifar_resnet18 --synthetic --synthetic-samples 64 --batch 16 --bn-group 8 --lr 1e30 "
      "--val-split '' --run-dir bn",
      2, {});
  expect_told(done("ckpt cat bn/bad-step-000000002 bn1.running_var"), 0, {"\n  0 of 64 not finite\n"});
}

// A disk that takes nothing costs what would be kept, and not the message.
TEST_F(BadStep, IsToldThoughItCannotBeKept) {
  expect_failed(
      digits + "--lr 1e30 --run-dir r --inject io:0:write:1:1000", 1,
      {"the loss of step 2 is not finite", "warning: the step is not kept for --replay: ", "Input/output error"});
  EXPECT_EQ(names_in("r"), (std::vector<std::string>{"log.jsonl", "run.json", "run.lock", "status.json"}));
}

// They are no checkpoint, and no result.
TEST_F(BadStep, ParametersThatAnUpdateMadeInfiniteAreNotKept) {
  const std::string toy =
      "train toy --batch 32 --val-split '' --run-dir inf --keep 1 --save-every '32 samples' "
      "--resume auto --resume-anyway ";
  const auto expect_left = [] { EXPECT_EQ(names_in("inf/checkpoints"), std::vector<std::string>{"step-000000002"}); };
  done(toy + "--max-steps 2");
  expect_failed(toy + "--max-steps 3 --lr 1e39", 1, {"error: parameter '", "' is not finite"});
  expect_left();
  expect_failed(toy + "--max-steps 6 --lr 1e39", 1,
                {"warning: no checkpoint after step 3: ", " is not finite; training continues"});
  expect_left();
}

/// Twelve samples on 3 ranks: the ninth is of the second step, and there of rank 1.
const std::string on_set =
    "train toy --data d --order sequential --batch 6 --epochs 1 --lr 1e-9 --val-split '' --run-dir r";

TEST_F(BadStep, OfASampleThatIsInfiniteNamesTheRank) {
  write("t.csv", table(12, 8, "inf"));
  done("shard import csv t.csv --no-classes --out d");

  expect_failed(on_set, 3, {"the loss of step 2 is not finite", "rank 1 on " + runtime::host_name() + ", first in "});
  EXPECT_FALSE(fs::exists("r/weights.h5"));
  EXPECT_TRUE(has(file("r/status.json"), R"("state": "failed")"));
}

TEST_F(BadStep, OfAShardThatHasChangedNamesTheFile) {
  write("t.csv", table(12, 8, "1234.5"));
  done("shard import csv t.csv --no-classes --out d");
  done(on_set, 3);
  fs::remove_all("r");
  std::string shard = file("d/train-00000.h5");
  const std::size_t at = shard.find(std::string{"\0\x50\x9a\x44", 4});  // 1234.5
  ASSERT_NE(at, std::string::npos);
  shard[at] = static_cast<char>(shard[at] ^ 0x5a);
  write("d/train-00000.h5", shard);

  expect_failed(on_set, 3, {"train-00000.h5"});
  EXPECT_FALSE(fs::exists("r/weights.h5"));
}

// A process that has no descriptors left says nothing about the data.
TEST_F(BadStep, IsNotToldOfAProcessWithoutDescriptors) {
  if (is_sanitized) GTEST_SKIP() << "the sanitizer needs descriptors";
  write("t.csv", table(12, 8, "0.5"));
  done("shard import csv t.csv --no-classes --out d");
  constexpr rlim_t n_of_capture = 3;  // what is printed goes to files
  int n_told = 0;
  Ended ended{.exit_code = 3};
  for (rlim_t n = n_of_capture; n < 40 && ended.exit_code == 3; ++n) {
    const io::FewDescriptors few{n};
    ended = lockstep_on(words_of("train toy --data d --max-steps 1 --val-split '' --run-dir r" + std::to_string(n)));
    if (has(ended.err, "error: cannot open ") && has(ended.err, "open files")) ++n_told;
  }
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_GT(n_told, 0) << "no limit was met";
}

}  // namespace
}  // namespace lockstep::training

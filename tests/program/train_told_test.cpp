// lockstep train: what a run tells of itself, in its output and in its folder.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "core/flags.hpp"
#include "parallel/strategy.hpp"
#include "runtime/launcher.hpp"
#include "runtime/session.hpp"
#include "runtime/watch/watchdog.hpp"
#include "support/lockstep_program.hpp"
#include "support/text.hpp"
#include "training/command.hpp"
#include "unit/io/temporary_folder.hpp"

namespace lockstep::training {
namespace {

namespace fs = std::filesystem;
using io::get;
using support::Ended;
using support::expect_told;
using support::has;
using support::lockstep_on;
using Json = nlohmann::json;

/// Ten black images of the classes 0 to 9 as MNIST has them: `part` is train or t10k.
void write_mnist(const std::string& part) {
  const std::string n{"\0\0\0\x0a", 4};
  std::string labels{"\0\0\x08\x01", 4};
  labels += n;
  for (char label = 0; label < 10; ++label) labels += label;
  support::InFolder::write("idx/" + part + "-labels-idx1-ubyte", labels);
  support::InFolder::write(
      "idx/" + part + "-images-idx3-ubyte",
      std::string{"\0\0\x08\x03", 4} + n + std::string{"\0\0\0\x1c\0\0\0\x1c", 8} + std::string(7840, '\0'));
}

class TrainTold : public support::InFolder {};

Ended trained(const std::string& words, int n_ranks = 1) {
  return support::expect_done(lockstep_on, "train " + words, n_ranks);
}
void made(const std::string& words) { support::expect_done(lockstep_on, "shard " + words); }

/// As often as told; once where it does not matter to whom.
void expect_once(const std::string& text, const std::string& words) {
  EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
  EXPECT_EQ(text.find(words), text.rfind(words)) << words << "\n" << text;
}

void expect_line(const Ended& ran, const char* pattern) {
  EXPECT_TRUE(std::regex_search(ran.out, std::regex{std::string{"(^|\n)"} + pattern})) << pattern << "\n" << ran.out;
}

// Any of them may be the only one that there is.
TEST_F(TrainTold, AProcessThatIsAloneTellsWhateverItsRankIs) {
  for (const char* const line : {"train toy --threads 1", "ckpt ls nothing", "shard stat nothing"}) {
    runtime::LauncherHint hint;
    hint.name = "Open MPI mpirun";
    hint.rank = 2;
    hint.n_ranks = 4;
    const Ended ran = support::run_ranks({0}, [&](const runtime::Communicator& world) {
      const runtime::Session session{world};
      runtime::Watchdog watchdog{{}, {0}};
      return run_on_ranks(session, parse_command_line(support::words_of(line)), hint, watchdog);
    });
    expect_told(ran, 2, {"started 4 processes, but each runs as a single rank", "unset its variables"});
  }
}

TEST_F(TrainTold, TheTutorialsOwnLines) {
  expect_told(trained("toy 2 1 --compat --run-dir r", 2), 0,
              {"[GPU1] Epoch 0 | Batchsize: 16 | Steps: 64\n", "\nEpoch 0 | Training checkpoint saved at "});
}

TEST_F(TrainTold, WhatAStrategyDivides) {
  const std::string toy = "train toy --strategy zero1 --threads 1 ";
  const Ended on_two = support::run_lockstep(support::words_of(toy + "--dry-run"), {0, 1});
  expect_line(on_two,
              "strategy +zero1: each node keeps all parameters, .* and all ranks divide the optimizer states\n");
  EXPECT_FALSE(has(on_two.err, "the same as ddp")) << on_two.err;
  for (const parallel::Strategy strategy : parallel::strategies_on(false)) {
    const bool is_chosen = strategy == parallel::Strategy::zero1;
    const std::string row = fmt::format("{}{} .* (yes|half|unsure)\n", name(strategy), is_chosen ? " \\*" : "");
    expect_line(on_two, row.c_str());
  }
  expect_line(on_two, "to send: at [0-9.]+ GB/s of each rank, measured now ");
  expect_line(on_two, "hidden: products of a step take at least ");
  const Ended on_one = support::run_lockstep(support::words_of(toy + "--max-steps 1 --run-dir r"), {0, 0});
  expect_once(on_one.err, "strategy zero1 is the same as ddp here");
  const Ended chosen = trained("toy --threads 1 --max-steps 1 --strategy auto --run-dir a", 2);
  expect_once(chosen.err, "strategy ddp: it needs ");
  const Json run = Json::parse(get("a/run.json"));
  EXPECT_EQ(run["recipe"]["strategy"], "ddp");
  EXPECT_TRUE(has(run["strategy"]["why"].get<std::string>(), "it needs "));
  EXPECT_TRUE(Json::parse(get("r/run.json"))["strategy"]["why"].is_null());
  expect_line(trained("toy --threads 1 --dry-run --strategy auto", 2), "chosen +it needs .* on node ");
  const Ended described = trained("toy --threads 1 --dry-run", 2);
  expect_line(described, "ddp \\* .* 0 +0 +0 +-\n");
  EXPECT_FALSE(has(described.out, "to send: at")) << described.out;
}

/// What a dry run prints of a strategy before what is of this machine: "states", "pool", "params", "grads", "parts".
std::vector<std::string> kept_in_row(const Ended& described, std::string_view strategy) {
  const std::string row = "\n" + std::string{strategy};
  std::istringstream words{described.out.substr(described.out.find(row) + row.size())};
  std::vector<std::string> cells;
  for (std::string cell; cells.size() < 5 && words >> cell;)
    if (cell != "*") cells.push_back(cell);
  return cells;
}

TEST_F(TrainTold, AJobThatIsNotThereIsPlannedAsOneThatIs) {
  const std::string words =
      "train digits --synthetic-samples 256 --threads 1 --optimizer adam --strategy fsdp --dry-run";
  const Ended there = support::run_lockstep(support::words_of(words), {0, 1, 2, 3});
  const Ended assumed = support::run_lockstep(support::words_of(words + " --expect-ranks 4"), {0});
  expect_line(assumed, "dry run +4 ranks on 4 nodes, assumed by --expect-ranks;");
  EXPECT_FALSE(has(assumed.err, "the same as")) << assumed.err;
  const std::regex traffic{"\ntraffic +([0-9.]+ .B) per step between nodes"};
  std::smatch of_there, of_assumed;
  ASSERT_TRUE(std::regex_search(there.out, of_there, traffic)) << there.out;
  ASSERT_TRUE(std::regex_search(assumed.out, of_assumed, traffic)) << assumed.out;
  EXPECT_EQ(of_there[1], of_assumed[1]);
  for (const std::string_view strategy : core::names_of(parallel::strategies_on(false)))
    EXPECT_EQ(kept_in_row(there, strategy), kept_in_row(assumed, strategy)) << strategy << there.out << assumed.out;
  const Ended refused = support::run_lockstep(support::words_of("train toy --expect-ranks 4"), {0});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(has(refused.err, "the job has 1 rank")) << refused.err;
}

TEST_F(TrainTold, WhatWasForecastBesideWhatWasMeasured) {
  for (const std::string_view strategy : core::names_of(parallel::strategies_on(false))) {
    const std::string words = fmt::format(
        "train digits --synthetic-samples 256 --max-steps 3 --threads 1 --optimizer adam --clip-norm 1 --strategy {0} "
        "--run-dir {0}",
        strategy);
    const Ended ran = support::run_lockstep(support::words_of(words), {0, 0, 1, 1});
    expect_line(ran, "sent +[0-9.]+ MB in [0-9]+ messages \\(forecast [0-9.]+ MB in [0-9]+ messages\\) per step\n");
    const Json run = Json::parse(get(fmt::format("{}/run.json", strategy)));
    const Json &forecast = run["forecast"], &measured = run["measured"];
    for (const char* const key : {"mem_states_GB", "sent_GB_per_step", "n_messages_per_step"}) {
      EXPECT_GT(forecast[key], 0) << key;
      EXPECT_DOUBLE_EQ(forecast[key], measured[key]) << strategy << " " << key;
    }
    EXPECT_GT(measured["communication_ms"], 0);
    const std::string log = get(fmt::format("{}/log.jsonl", strategy));
    const std::string last = log.substr(log.rfind('\n', log.size() - 2) + 1);
    EXPECT_EQ(Json::parse(last)["measured"], measured);
    EXPECT_EQ(Json::parse(last)["forecast"], forecast);
  }
}

TEST_F(TrainTold, TimesByLayer) {
  const std::string digits = "digits --synthetic-samples 640 --max-steps 7 --profile --run-dir ";
  const Ended ran = trained(digits + "one", 2);
  expect_line(ran, "conv2 +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+  product +[0-9]+\n");
  expect_line(ran, "all layers ");
  // As the tutorial writes it, in two layers: the same network, layer by layer.
  expect_line(trained(digits + "two --loss nll"), "log_softmax +[0-9.]+ +[0-9.]+ ");
}

TEST_F(TrainTold, ASetWithNothingToTrainOnIsEvaluatedOrLearned) {
  write_mnist("t10k");
  made("import mnist idx --out val-only");
  const Ended evaluated = trained("mnist_cnn --data val-only --evaluate-only --run-dir evaluated", 2);
  expect_line(evaluated, "evaluation: loss .* of 10 samples");
  expect_once(evaluated.out + evaluated.err, "evaluation:");
  EXPECT_EQ(Json::parse(get("evaluated/status.json"))["state"], "finished");
  const Ended learned = trained("mnist_cnn --data val-only --epochs 2 --run-dir learned");
  expect_once(learned.err, "no split 'train': training uses its only one, 'val'");
  expect_once(learned.err, "evaluation uses the samples of training");
  EXPECT_TRUE(has(learned.out, "10 samples"));
  expect_refused(lockstep_on,
                 {"train mnist_cnn --data val-only --train-split first --run-dir untrained",
                  {"no split 'first' to train on, only val", "--train-split val; or lockstep shard split"}});
}

TEST_F(TrainTold, AmongFiveClassesTheRightOneIsOfTheBestFive) {
  for (const int n : {5, 6}) {
    const std::string classes = " --classes " + std::to_string(n);
    const std::string name = std::to_string(n), run = "run" + name;
    made("synth images --samples 64 --height 28 --width 28 --channels 1 --out " + name + classes);
    trained("mnist_cnn --max-steps 1 --data " + name + classes + " --run-dir " + run);
    const std::string log = get(run + "/log.jsonl");
    EXPECT_EQ(has(log, "\"top5_percent\":null"), n == 5) << log;
  }
}

// Both splits are read there, and the original is needed no longer, but for its manifest.
TEST_F(TrainTold, WhatWasReadOfACopyOfTheSet) {
  made("synth digits --out few --samples 640");
  const std::string digits = "digits --data few --epochs 1 ";
  const std::string blocked = digits + "--order blocked --window-chunks 1 --deterministic --digest --run-dir ";
  const std::string digest = trained(blocked + "unstaged").line("digest");
  const Ended staged = trained(blocked + "staged --stage local");
  EXPECT_NE(digest, "");
  EXPECT_EQ(staged.line("digest"), digest);
  expect_line(staged,
              "data  .* read \\([0-9.]+ ([kMG]B|bytes)/s\\) in [0-9]+ chunks, 0 check sum failures.*, mixing [01]");
  for (const std::string shard : {"few/train-00000.h5", "few/val-00000.h5"}) fs::remove(shard);

  std::vector<double> read_bytes;
  for (const int n : {1, 2}) {
    const std::string run = "copy" + std::to_string(n);
    trained(digits + "--cache node --stage local --run-dir " + run, n);
    const std::string log = get(run + "/log.jsonl");
    const Json data = Json::parse(log.substr(log.rfind('\n', log.size() - 2) + 1))["data"];
    EXPECT_TRUE(data["cached"]) << data;
    EXPECT_TRUE(data["mixing"].is_null()) << data;
    read_bytes.push_back(data["read_bytes"]);
  }
  // All of it once, by all ranks together, and again only chunks in which both have samples.
  EXPECT_GT(read_bytes[0], 5e5);
  EXPECT_GE(read_bytes[1], read_bytes[0]);
  EXPECT_LT(read_bytes[1], 1.5 * read_bytes[0]);
  expect_refused(lockstep_on, {"train digits --synthetic --stage local --run-dir none",
                               {"stage has no effect where synthetic is true"}});
}

// What a run does otherwise than its recipe may mean, before it begins.
TEST_F(TrainTold, SurprisesOnce) {
  write_mnist("train");
  made("import mnist idx --out train-only");
  const Ended ran = trained("mnist_cnn --data train-only --samples 21 --batch 4 --run-dir r");
  expect_once(ran.err, "nothing is evaluated, because 'train-only' has no split 'val'");
  expect_once(ran.err, "samples 21 is rounded up to 24");
  expect_line(ran, "finished within epoch 3 after 7 steps, 24 samples");
}

// A rank that fails alone says why, with the position.
TEST_F(TrainTold, WhyARankHasFailed) {
  made("synth digits --out d --samples 2000 --compress none --chunk-size 64K");
  std::string shard = get("d/train-00000.h5");
  shard.at(shard.size() * 9 / 10) = static_cast<char>(shard[shard.size() * 9 / 10] ^ 1);
  write("d/train-00000.h5", shard);
  const Ended ran =
      lockstep_on(support::words_of("train digits --data d --order sequential --cache none --run-dir r"), 2);
  EXPECT_EQ(ran.exit_code, 1);
  const Json status = Json::parse(get("r/status.json"));
  EXPECT_EQ(status["state"], "failed");
  EXPECT_GE(status["step"], 1);
  EXPECT_TRUE(std::regex_search(status["message"].get<std::string>(), std::regex{"rank [01] on .*CRC32C.*d/train"}))
      << status;
}

TEST_F(TrainTold, TheRecipeAsItIs) { expect_line(trained("toy --print-config"), "batch = 32 "); }

}  // namespace
}  // namespace lockstep::training

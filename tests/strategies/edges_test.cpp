// Ranks without samples take part in all that the others do, by every strategy; and a bit that flips on a rank is found
// and named.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "strategies/words.hpp"
#include "support/lockstep_program.hpp"
#include "unit/io/temporary_folder.hpp"

namespace lockstep::support {
namespace {

using Json = nlohmann::json;

/// Losses of training and evaluation, and the digest of a run that has one.
struct Learned {
  double trained = 0, evaluated = 0;
  std::string digest{};
};

Learned learned(const std::string& words, const std::string& strategy, const std::vector<int>& nodes) {
  const io::TemporaryFolder folder;
  const Ended ended = run_lockstep(
      words_of("train " + words + " --threads 1 --save-every 0 --strategy " + strategy + " --run-dir " + folder / "r"),
      nodes);
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  const std::string log = io::get(folder / "r/log.jsonl"), last = log.substr(log.rfind("{\"kind\":\"final\""));
  const Json record = Json::parse(last);
  return {record.at("loss"), record.at("evaluation").at("loss"), ended.line("digest")};
}

// Batches of four samples on four ranks: the last has one, and the set has fewer than ranks, or one more.
TEST(Edges, RanksWithoutSamplesTakePart) {
  for (const std::string network : {"toy", "digits", "movielens --synthetic --users 30 --items 40"})
    for (const std::string flags : {" --deterministic --digest", ""}) {
      const std::string n = network == "digits" || !flags.empty() ? "5" : "1";
      const std::string words =
          network + " --batch 4 --epochs 2 --val-split train --clip-norm 0.5 --synthetic-samples " + n + flags;
      const Learned one = learned(words, "ddp", {0});
      EXPECT_EQ(one.digest.empty(), flags.empty());
      for (const std::string& strategy : strategy_words()) {
        if (network.starts_with("movielens") && flags.empty() && refuses_tables(strategy)) continue;
        for (const std::vector<int>& nodes : {std::vector{0, 1, 2, 3}, {0, 0, 1, 1}}) {
          SCOPED_TRACE("lockstep train " + words + " --strategy " + strategy + ", nodes " +
                       testing::PrintToString(nodes));
          const Learned found = learned(words, strategy, nodes);
          EXPECT_EQ(found.digest, one.digest);
          EXPECT_NEAR(found.trained, one.trained, 1e-6 * one.trained);
          EXPECT_NEAR(found.evaluated, one.evaluated, 1e-5 * one.evaluated);
        }
      }
    }
}

// Every rank writes a part of the largest matrix. The message is that of the rank that wrote the bit.
TEST(Edges, AFlippedBitIsNamed) {
  for (const std::string& strategy : strategy_words())
    for (const int rank : {1, 2}) {
      const io::TemporaryFolder folder;
      const std::string at = std::to_string(rank);
      const Ended ended = run_lockstep(
          words_of("train digits --batch 16 --synthetic-samples 64 --val-split= --max-steps 3 --threads 1 --strategy " +
                   strategy + " --inject flip:fc1.weight:" + at + ":1 --run-dir " + folder / "r"),
          {0, 0, 1, 1});
      SCOPED_TRACE(strategy);
      expect_told(ended, 1,
                  {"parameters of 'fc1.weight' changed in memory between two steps",
                   "rank " + at + " on node " + std::to_string(rank / 2), "failed within epoch 1 after 3 steps"});
    }
}

}  // namespace
}  // namespace lockstep::support

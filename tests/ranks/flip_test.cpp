// One bit of a parameter flips between two steps, in the memory that two ranks share (--inject). If the guard looks, it
// names the parameter and the rank that writes it, or the run goes back to a checkpoint.
#include <gtest/gtest.h>

#include <filesystem>

#include "support/lockstep_program.hpp"
#include "support/text.hpp"

namespace lockstep::support {
namespace {

class Flip : public InFolder {};

Ended train(const std::string& words) {
  return run_lockstep(words_of("train digits --batch 16 --synthetic-samples 64 --val-split= --epochs 40 --threads 1 "
                               "--deterministic --digest " +
                               words),
                      {0, 0});
}

/// The digest of a run, which must end normally.
std::string digest(const Ended& ended) {
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  return ended.line("digest");
}

std::string text_of(const std::string& file) { return files_here()["./" + file]; }

// Each rank writes a part of the arena; the first parameter of the backward pass has parts of both.
TEST_F(Flip, EndsARunWithoutACheckpointAndIsNamed) {
  for (const auto& [parameter, rank] : {std::pair{"fc2.weight", "0"}, {"fc2.weight", "1"}, {"conv1.bias", "1"}}) {
    const std::string flip = std::string{"flip:"} + parameter + ":" + rank + ":1";
    const std::string folder = std::string{parameter} + rank;
    expect_told(train("--max-steps 3 --inject " + flip + " --run-dir " + folder), 1,
                {"warning: a fire drill: faults are injected, " + flip,
                 std::string{"parameters of '"} + parameter + "' changed in memory between two steps",
                 std::string{"rank "} + rank + " on node 0", "failed within epoch 1 after 3 steps, 48 samples"});
    EXPECT_TRUE(has(text_of(folder + "/run.json"), '"' + flip + '"'));
  }
}

// The flip has an effect: without the guard the result differs.
TEST_F(Flip, ChangesTheResultWhereNobodyLooks) {
  EXPECT_NE(digest(train("--max-steps 3 --inject flip:fc2.weight:0:2 --run-dir unseen")),
            digest(train("--max-steps 3 --run-dir whole")));
}

TEST_F(Flip, GoesBackToTheCheckpointBefore) {
  int n = 0;
  for (const std::string flags : {"", " --clip-norm 1", " --optimizer lamb --lr 0.01"}) {
    SCOPED_TRACE(flags);
    const std::string name = std::to_string(n++), whole = digest(train("--max-steps 2 --run-dir whole" + name + flags));
    static_cast<void>(digest(train("--max-steps 1 --save-every=1 --run-dir first" + name + flags)));
    const Ended back =
        train("--resume first" + name + " --max-steps 2 --inject flip:fc2.weight:0:2 --run-dir back" + name + flags);
    EXPECT_EQ(digest(back), whole);
    expect_told(back, 0,
                {"warning: after step 2: parameters of 'fc2.weight' changed in memory between two steps (rank 0 on "
                 "node 0); going back to first" +
                 name + "/checkpoints/step-000000001"});
    const std::string log = text_of("back" + name + "/log.jsonl");
    EXPECT_TRUE(has(log, R"("kind":"resume","epoch":)") && has(log, R"("why":"parameters of )")) << log;
  }
}

// The bit flips after the hash of the step that is saved, and before that hash is compared. The checkpoint is set
// aside, and the previous one still exists.
TEST_F(Flip, SetsAsideACheckpointThatMayHoldIt) {
  const auto train_toy = [](const std::string& words) {
    return run_lockstep(words_of("train toy --batch 16 --max-steps 120 --threads 1 --deterministic --digest " + words),
                        {0, 0});
  };
  const Ended saved =
      train_toy("--save-every=800samples --keep 1 --inject flip:bias:1:101,late:0:sync:3:1500ms --run-dir saved");
  EXPECT_EQ(digest(saved), digest(train_toy("--run-dir whole")));
  expect_told(saved, 0,
              {"warning: checkpoint 'saved/checkpoints/step-000000100' may contain the change",
               "(rank 1 on node 0); going back to saved/checkpoints/step-000000050"});
  EXPECT_TRUE(std::filesystem::exists("saved/checkpoints/step-000000100.suspect"));
  EXPECT_TRUE(std::filesystem::exists("saved/checkpoints/step-000000120"));
}

}  // namespace
}  // namespace lockstep::support

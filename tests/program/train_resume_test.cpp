// lockstep train --resume: what it goes on from, what is kept of a run that went on, and what is refused. The result is
// that of a run which was never interrupted: tests/ranks/resume_test.cpp.
#include <fmt/format.h>

#include <filesystem>

#include "support/lockstep_program.hpp"
#include "support/text.hpp"

namespace lockstep::training {
namespace {

namespace fs = std::filesystem;
using support::Ended;
using support::expect_told;
using support::files_here;
using support::has;
using support::lockstep_on;

/// 16 steps an epoch.
const std::string toy = "train toy --synthetic-samples 512 --save-every 0 --digest ";

class TrainResume : public support::InFolder {
 protected:
  static Ended trained(const std::string& flags) { return support::expect_done(lockstep_on, toy + flags); }
  static std::string file(const std::string& path) { return files_here()["./" + path]; }
  /// Ends after step 21, with checkpoints of that and of step 20.
  static void make_part() { trained("--max-steps 21 --save-every '320 samples' --keep 2 --run-dir part"); }
};

/// The lines of status.json that tell how far the run is.
std::string position_in(const std::string& status) {
  const std::size_t begin = status.find("\"epoch\":");
  return begin == std::string::npos ? "" : status.substr(begin, status.find("\"elapsed_s\"") - begin);
}

TEST_F(TrainResume, RefusesWhatItCannotGoOnFrom) {
  make_part();
  trained("--epochs 1 --run-dir whole");
  trained("--epochs 4 --schedule cosine --save-every 1 --run-dir cosine");
  expect_told(lockstep_on(support::words_of(toy + "--lr 1e30 --run-dir bad")), 1,
              {"--replay bad/bad-step-000000003\n"});

  const std::string part = "checkpoint 'part/checkpoints/step-000000021' comes from another recipe: ";
  const support::Refused table[] = {
      {"--epochs 3 --lr 0.5 --resume part --run-dir other", {part + "lr was 0.001, and is now 0.5", "--resume-anyway"}},
      {"--epochs 3 --lr 0.5 --seed 2 --resume part --run-dir other",
       {part + "seed was 1, and is now 2; 1 more differ"}},
      {"--resume auto", {"(--resume auto)", "--run-dir FOLDER"}},
      {"--resume part --dry-run", {"no effect with --dry-run", "(--resume)"}},
      {"--resume part --init-from part/weights.h5", {"no effect with --init-from", "(--resume)"}},
      {"--resume auto --run-dir none --evaluate-only", {"no effect with --evaluate-only", "(--resume)"}},
      {"--resume nothing --run-dir other", {"there is no whole checkpoint in 'nothing': there is no such folder"}},
      {"--epochs 3 --run-dir part", {"'part' holds another run", "--resume auto"}},
      {"--epochs 3 --resume auto --run-dir whole", {"'whole' holds a run that ended without a checkpoint"}},
      {"--resume auto --run-dir part --inject stop:0:save", {"'part' holds a run that was started without --inject"}},
      {"--resume part/checkpoints/step-000000020 --run-dir part",
       {"'part' has a newer checkpoint than the one to resume: 'part/checkpoints/step-000000021'"}},
      {"--batch 64 --resume part --resume-anyway --run-dir other",
       {"an epoch of checkpoint 'part/checkpoints/step-000000021' has 16 steps, but would now have 8"}},
      {"--epochs 5 --schedule cosine --resume cosine --run-dir other", {"another recipe: epochs was 4, and is now 5"}},
      {"--resume bad/bad-step-000000003 --run-dir other", {"is kept to replay a bad step, not to resume from"}},
  };
  for (support::Refused refused : table) {
    refused.line.insert(0, toy);
    refused.says.push_back("fix: ");
    expect_refused(lockstep_on, refused);
  }
}

TEST_F(TrainResume, TellsWhereItGoesOn) {
  make_part();
  const Ended ran = trained("--epochs 3 --resume part --run-dir rest");
  expect_told(ran, 0, {"resumed epoch 2, after step 21, from part/checkpoints/step-000000021"});
  EXPECT_TRUE(has(file("rest/log.jsonl"), R"("kind":"resume","epoch":2,"step":21,)"));
  EXPECT_TRUE(has(file("rest/status.json"), R"("checkpoint": "part/checkpoints/step-000000021")"));

  EXPECT_NE(trained("--epochs 3 --lr 0.5 --resume part --resume-anyway --run-dir other").line("digest"),
            ran.line("digest"));
}

// Keys that may change, but not without other bits: neither the line nor run.json promises the same.
TEST_F(TrainResume, PromisesNoSameBitsAfterAChangeOfWhatTheyDependOn) {
  trained("--max-steps 21 --save-every 1 --deterministic --lanes 4 --run-dir part");
  const auto resumed = [](const std::string& flags, const std::string& run) {
    return trained("--epochs 2 --deterministic --resume part " + flags + " --run-dir " + run);
  };
  const struct {
    const char *flags, *run, *says;
  } rows[] = {{"--lanes 8", "lanes", "because lanes was 4, and is now 8"},
              {"--lanes 4 --accumulate 2", "accumulate", "because accumulate was 1, and is now 2"},
              {"--lanes 4 --precision bf16", "precision", "because precision was \"f32\", and is now \"bf16\""},
              {"--lanes 4 --lr 0.5 --resume-anyway", "lr", "because lr was 0.001, and is now 0.5"}};
  for (const auto& row : rows) {
    const Ended ran = resumed(row.flags, row.run);
    expect_told(ran, 0,
                {"comes from a run with other settings: the result may differ", row.says, "resume  may differ"});
    const std::string run = file(fmt::format("{}/run.json", row.run));
    EXPECT_TRUE(has(run, R"("same_bits": "none")")) << run;
    EXPECT_FALSE(has(run, "bit-identical")) << run;
  }
  const Ended same = resumed("--lanes 4", "same");
  expect_told(same, 0, {"resume  bit-identical"});
  EXPECT_FALSE(has(same.err, "other settings")) << same.err;
}

// Steps 20 and 30 are due; 21 and 25 are ends.
TEST_F(TrainResume, SavesAtTheStepsOfAWholeRun) {
  make_part();
  trained("--max-steps 25 --save-every '320 samples' --keep 9 --resume auto --run-dir part");
  const auto files = files_here();
  for (const int step : {20, 21, 22, 23, 24, 25})
    EXPECT_EQ(files.contains(fmt::format("./part/checkpoints/step-{:09}/DONE", step)), step < 22 || step == 25) << step;
}

// `never` is what --resume is without the flag, and a folder's name like any other.
TEST_F(TrainResume, AutoBeginsWhereNothingIsAndIsThroughWhereAllIs) {
  fs::create_directory("never");
  const std::string whole = trained("--epochs 3 --run-dir never").line("digest");
  EXPECT_FALSE(whole.empty());
  expect_refused(lockstep_on, {toy + "--epochs 3 --run-dir never", {"'never' holds another run"}});

  EXPECT_EQ(trained("--epochs 3 --resume auto --run-dir fresh").line("digest"), whole);
  const Ended again = trained("--epochs 3 --resume auto --run-dir fresh");
  EXPECT_EQ(again.line("digest"), whole);
  expect_told(again, 0, {"resumed epoch 3, after step 48"});
}

TEST_F(TrainResume, ShorterThanItHasBecomeARunIsOver) {
  make_part();
  const std::string before = position_in(file("part/status.json"));
  EXPECT_TRUE(has(before, "\"step\": 21,")) << before;

  const Ended ran = trained("--max-steps 1 --resume auto --run-dir part");
  expect_told(ran, 0,
              {"finished",
               "warning: nothing is trained: checkpoint 'part/checkpoints/step-000000021' is after step 21, but the "
               "requested number of steps is 1\n"});
  EXPECT_FALSE(has(ran.err, "\nepoch")) << "an epoch of nothing: " << ran.err;
  EXPECT_EQ(position_in(file("part/status.json")), before);

  trained("--epochs 2 --save-every 1 --run-dir two");
  expect_told(trained("--epochs 1 --save-every 1 --resume auto --run-dir two"), 0,
              {"finished after 2 epochs, 32 steps"});
  EXPECT_TRUE(has(file("two/status.json"), "\"epoch\": 2,"));
}

TEST_F(TrainResume, ADrillGoesOnInTheFolderOfADrill) {
  const std::string drill = "--save-every 1 --run-dir drill --resume auto ";
  trained(drill + "--epochs 1 --inject late:0:training:3:1ms");
  trained(drill + "--epochs 2 --inject late:0:training:20:1ms");
  trained(drill + "--epochs 3");
  const std::string run = file("drill/run.json");
  for (const std::string fault : {"late:0:training:3:1ms", "late:0:training:20:1ms"})
    EXPECT_TRUE(has(run, fault)) << run;
}

// Training goes on, the weights are kept, and so does a run from the checkpoint before.
TEST_F(TrainResume, ADiskThatTakesNoMoreCostsTheCheckpointsAfter) {
  const std::string line = "train toy --synthetic-samples 128 --epochs 3 --save-every 1 --run-dir ";
  for (const int n_ranks : {1, 2}) {
    const std::string run = "r" + std::to_string(n_ranks);
    // The last rank writes all of so few parameters, in three writes.
    const std::string fault = " --inject io:" + std::to_string(n_ranks - 1) + ":write:4:1000";
    const Ended ended = lockstep_on(support::words_of(line + run + fault), n_ranks);
    expect_told(
        ended, 3,
        {"warning: no checkpoint after step 8: ", "; training continues, and earlier checkpoints stay\n",
         "error: cannot write a checkpoint: ", "Input/output error", "fix: ", "failed after 3 epochs, 12 steps"});
    EXPECT_EQ(ended.err.find("error: "), ended.err.rfind("error: ")) << ended.err;
    const std::string status = file(run + "/status.json");
    for (const std::string member : {R"("state": "failed")", R"("message": "cannot write a checkpoint: )",
                                     R"("step": 12,)", R"(/step-000000004")"})
      EXPECT_TRUE(has(status, member)) << member << " is not in " << status;
    EXPECT_TRUE(fs::exists(run + "/weights.h5"));
    EXPECT_EQ(std::distance(fs::directory_iterator{run + "/checkpoints"}, {}), 1);
    expect_told(support::expect_done(lockstep_on, line + "on-" + run + " --resume " + run, n_ranks), 0,
                {"resumed epoch 2, after step 4", "finished after 3 epochs, 12 steps"});
  }
}

// Whatever it leads to, the one that was written last stays.
TEST_F(TrainResume, AWholeCheckpointTakesThePlaceOfTheDamagedOne) {
  make_part();
  const std::string newest = "part/checkpoints/step-000000021";
  std::string bytes = file(newest + "/rank-00000.h5");
  ASSERT_GT(bytes.size(), 1000U);
  bytes[1000] = static_cast<char>(bytes[1000] ^ 0x5a);
  write(newest + "/rank-00000.h5", bytes);
  expect_told(lockstep_on({"ckpt", "verify", newest}), 1, {"is damaged: "});

  expect_told(trained("--max-steps 21 --resume auto --keep 1 --run-dir part"), 0, {"resumed epoch 2, after step 20"});
  expect_told(lockstep_on({"ckpt", "verify", "part"}), 0, {newest + " is whole"});
}

}  // namespace
}  // namespace lockstep::training

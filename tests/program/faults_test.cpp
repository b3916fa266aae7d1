// lockstep with faults of --inject that are no signals: files that are late, or cannot be written. Signals are of
// tests/fault.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <utility>

#include "core/clock.hpp"
#include "support/lockstep_program.hpp"
#include "support/text.hpp"
#include "unit/io/temporary_folder.hpp"

namespace lockstep::training {
namespace {

namespace fs = std::filesystem;
using support::Ended;
using support::expect_done;
using support::expect_told;
using support::has;
using support::lockstep_on;
using support::words_of;

class Faults : public support::InFolder {};

/// A fault of each of the first `n_ranks`: WORD:RANK:REST.
std::string on_each(int n_ranks, const std::string& word, const std::string& rest) {
  std::string faults = " --inject ";
  for (int rank = 0; rank < n_ranks; ++rank)
    faults += (rank > 0 ? "," : "") + word + ":" + std::to_string(rank) + ":" + rest;
  return faults;
}

std::size_t n_in(const std::string& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator{folder}, {}));
}

const std::string digits = "train digits --synthetic-samples 64 --batch 4 --epochs 2 --val-split '' ";

// Saved in the background; the last one is waited for.
TEST_F(Faults, ASlowDiskChangesNothing) {
  for (const int n : {1, 2}) {
    const std::string run = digits + "--deterministic --digest --run-dir ", name = std::to_string(n);
    const std::string whole = expect_done(lockstep_on, run + "whole" + name, n).line("digest");
    const Ended late =
        expect_done(lockstep_on, run + name + " --save-every '64 samples'" + on_each(n, "late", "sync:each:100ms"), n);
    EXPECT_NE(whole, "");
    EXPECT_EQ(late.line("digest"), whole);
    expect_told(late, 0, {"injected: late:0:sync"});
    expect_told(lockstep_on({"ckpt", "verify", name}), 0, {"step-000000016 is whole", "step-000000032 is whole"});
  }
}

// What cannot be written costs no training, and at the end the exit code tells.
TEST_F(Faults, ACheckpointThatIsLostIsTold) {
  const Ended ran =
      lockstep_on(words_of(digits + "--save-every '64 samples' --run-dir r" + on_each(2, "io", "sync:1:1000")), 2);
  expect_told(ran, 3,
              {"warning: no checkpoint after step 16: cannot write a checkpoint: ", "Input/output error",
               "failed after 2 epochs, 32 steps"});
  EXPECT_EQ(ran.err.find("error: "), ran.err.rfind("error: ")) << ran.err;
  EXPECT_EQ(n_in("r/checkpoints"), 0U);
  EXPECT_GT(fs::file_size("r/weights.h5"), 0U);
}

// More space would not help.
TEST_F(Faults, ALimitOfFileSizesIsToldByItsName) {
  const std::string limit = "fix: raise the limit of file sizes of a process: ulimit -f unlimited";
  const io::FullDisk disk{1'000'000};
  expect_told(lockstep_on(words_of(digits + "--run-dir weights")), 3,
              {"cannot save weights to 'weights/weights.h5': ", "File too large", limit});
  expect_told(lockstep_on(words_of(digits + "--save-every '64 samples' --run-dir r")), 3,
              {"cannot write a checkpoint: ", "File too large", limit + "; --resume continues"});
}

/// The real time; acts once, when the run in `r` has recorded its first checkpoint. The single rank itself looks at the
/// clock and acts, so no test waits for it: sleep() and wait() only pass on what the run asks for.
class ActsAfterASave : public core::Clock {
 public:
  explicit ActsAfterASave(std::function<void()> act) : act_{std::move(act)} {}
  core::Seconds now() const noexcept override {
    std::ifstream log{"r/log.jsonl"};
    const std::string text{std::istreambuf_iterator<char>{log}, {}};
    if (!has_acted_ && has(text, "step-000000016") && !has_acted_.exchange(true)) act_();
    return core::real_clock().now();
  }
  std::int64_t date() const noexcept override { return core::real_clock().date(); }
  void sleep(core::Seconds time) const override { core::real_clock().sleep(time); }
  void wait(std::condition_variable& wake, std::unique_lock<std::mutex>& lock, core::Seconds time) const override {
    core::real_clock().wait(wake, lock, time);
  }

 private:
  std::function<void()> act_;
  mutable std::atomic<bool> has_acted_{false};
};

const std::string long_run =
    "train digits --synthetic-samples 64 --batch 4 --epochs 4 --val-split '' --save-every '64 samples' "
    "--threads 1 --run-dir r";

// Another run may have the name now: nothing is written there, and one message says why the run ends.
TEST_F(Faults, ARunWhoseFolderIsRenamedEnds) {
  const ActsAfterASave clock{[] {
    fs::rename("r", "moved");
    fs::create_directory("r");
    write("r/run.json", "another's");
  }};
  const Ended ran = support::run_lockstep(words_of(long_run), {0}, clock);
  expect_told(ran, 3, {"the run has lost its folder 'r'", "fix: "});
  EXPECT_EQ(ran.err.find("error: "), ran.err.rfind("error: ")) << ran.err;
  EXPECT_EQ(n_in("r"), 1U);
  EXPECT_TRUE(fs::exists("moved/checkpoints/step-000000016/DONE"));
}

TEST_F(Faults, ALinkInPlaceOfTheCheckpointsEndsTheRun) {
  support::expect_done(lockstep_on, digits + "--save-every '64 samples' --threads 1 --run-dir other");
  const auto others = [] {
    auto files = support::files_here();
    std::erase_if(files, [](const auto& one) { return !one.first.starts_with("./other/"); });
    return files;
  };
  const auto before = others();
  const ActsAfterASave clock{[] {
    fs::rename("r/checkpoints", "own");
    fs::create_directory_symlink("../other/checkpoints", "r/checkpoints");
  }};
  const Ended ran = support::run_lockstep(words_of(long_run + " --keep 1"), {0}, clock);
  expect_told(ran, 3, {"the run has lost its folder 'r/checkpoints'", "fix: "});
  EXPECT_EQ(ran.err.find("error: "), ran.err.rfind("error: ")) << ran.err;
  EXPECT_EQ(others(), before) << "of another run";
  EXPECT_TRUE(fs::exists("own/step-000000016/DONE"));
  EXPECT_TRUE(has(support::files_here()["./r/status.json"], R"("state": "failed")"));
}

// Training goes on, as on a full disk; at the end one message says what to do.
TEST_F(Faults, AFileInPlaceOfTheCheckpointsIsNamed) {
  const ActsAfterASave clock{[] {
    fs::remove_all("r/checkpoints");
    write("r/checkpoints", "another's");
  }};
  const Ended ran = support::run_lockstep(words_of(long_run), {0}, clock);
  expect_told(
      ran, 3,
      {"warning: no checkpoint after step 32: cannot write a checkpoint: ", "is not a folder", "fix: move it away"});
  EXPECT_EQ(ran.err.find("error: "), ran.err.rfind("error: ")) << ran.err;
  EXPECT_EQ(fs::file_size("r/checkpoints"), 9U);
  EXPECT_GT(fs::file_size("r/weights.h5"), 0U);
}

// Each phase that can be delayed is one that training times.
TEST_F(Faults, EveryPhaseOfDelayIsReached) {
  const std::vector<std::string> phases{"data_wait", "forward", "backward", "optimizer", "evaluation", "save"};
  std::string faults = "late:0:setup:1ms";
  for (const std::string& phase : phases) faults += ",delay:1:" + phase + ":1";
  const Ended ran = lockstep_on(
      words_of("train digits --synthetic-samples 64 --batch 4 --epochs 1 --run-dir r --inject " + faults), 2);
  for (const std::string& phase : phases) expect_told(ran, 0, {"injected: delay:1:" + phase + ":1"});
}

const std::string synth = "shard synth images --out set --samples 400 --chunk-size 256K --shard-size 1M";

TEST_F(Faults, NothingIsLeftOfASetThatCannotBeWritten) {
  for (const int n : {1, 3}) {
    for (const std::string fault : {"io:0:write:3", "io:0:sync"}) {
      const Ended ran = lockstep_on(words_of(synth + " --inject " + fault), n);
      expect_told(ran, 3, {"injected: " + fault, "error: ", "cannot ", "set", ": Input/output error"});
      EXPECT_EQ(ran.err.find("error: "), ran.err.rfind("error: ")) << ran.err;
      EXPECT_EQ(n_in("."), 0U);
    }
    expect_done(lockstep_on, synth + " --inject late:0:write:2:1ms", n);
    expect_done(lockstep_on, "shard verify set");
    fs::remove_all("set");
  }
}

// What is no fault of this command, or would spoil a set that is there.
TEST_F(Faults, RefusesFaultsThatDoNotBelongToASet) {
  expect_done(lockstep_on, "shard synth toy --out old --samples 20");
  const support::Refused table[] = {
      {"--out new --inject flip:w:0:1", {"not a fault"}}, {"--out new --inject stop:0:training", {"unknown phase"}},
      {"--out new --inject stop:3:work", {"no rank 3"}},  {"--out old --force --inject stop:0:work", {"a new set"}},
      {"--out old --inject stop:0:sync", {"exists"}},
  };
  for (support::Refused refused : table) {
    refused.line = "shard synth toy --samples 20 " + refused.line;
    expect_refused(lockstep_on, refused);
  }
}

}  // namespace
}  // namespace lockstep::training

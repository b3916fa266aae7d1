// lockstep train --verify-resume: the same bits are told as such, others are found and kept, and nothing else is left.
// Its jobs run within this process, one after another; tests/cli launches them.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <iostream>

#include "core/descriptor.hpp"
#include "core/log.hpp"
#include "runtime/communicator_threads.hpp"
#include "runtime/session.hpp"
#include "support/lockstep_program.hpp"
#include "support/text.hpp"
#include "training/command.hpp"

namespace lockstep::training {
namespace {

namespace fs = std::filesystem;
using support::Ended;
using support::expect_told;
using support::lockstep_on;
using support::words_of;

/// While one lives, what is written to `descriptor` goes to a file.
class Redirected {
 public:
  Redirected(int descriptor, const std::string& path) : descriptor_{descriptor}, before_{dup(descriptor)} {
    const core::Descriptor file{open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)};
    std::fflush(nullptr);
    dup2(file.get(), descriptor_);
  }
  ~Redirected() {
    std::fflush(nullptr);
    dup2(before_.get(), descriptor_);
  }
  Redirected(const Redirected&) = delete;
  Redirected& operator=(const Redirected&) = delete;

 private:
  int descriptor_;
  core::Descriptor before_;
};

/// On ranks that are threads. A signal comes when a job is through, or after `stop_after`.
class ThreadJobs final : public runtime::JobRunner {
 public:
  int run(const std::vector<std::string>& arguments, const runtime::JobOutput& output,
          const std::function<int()>& due) override {
    ++n_run;
    if (asked() != 0) return 128 + asked();
    std::vector<std::string> words = arguments;
    const auto nproc = std::ranges::find(words, "--nproc");
    const int n_ranks = std::stoi(nproc[1]);
    words.erase(nproc, nproc + 2);
    const auto add = [&words](const std::vector<std::string>& more) {
      words.insert(words.end(), more.begin(), more.end());
    };
    if (std::ranges::find(words, "--resume") != words.end()) add(added_to_resume);
    if (stop_after > 0 && support::has(output.out, "/interrupted-")) add({"--max-steps", std::to_string(stop_after)});
    int code = 0;
    {
      const Redirected out{STDOUT_FILENO, output.out}, err{STDERR_FILENO, output.err};
      code = run_on(n_ranks, words);
    }
    const int signal = due();
    return signal == SIGTERM && stop_after > 0 ? core::to_int(core::ExitCode::requeue) : code;
  }
  [[nodiscard]] int asked() const noexcept override { return asked_after > 0 && n_run >= asked_after ? SIGINT : 0; }

  std::vector<std::string> added_to_resume{};
  int stop_after = 0;   ///< steps
  int asked_after = 0;  ///< jobs
  int n_run = 0;

 private:
  static int run_on(int n_ranks, const std::vector<std::string>& words) {
    const Invocation invocation = parse_command_line(words);
    int code = 0;
    try {
      const std::vector<int> nodes(static_cast<std::size_t>(n_ranks));
      runtime::run_as_threads({.nodes = nodes, .patience = {300}}, [&](runtime::Communicator& world) {
        const runtime::Session session{world};
        runtime::Watchdog watchdog{{}, {0}};
        const int mine = run_on_ranks(session, invocation, {}, watchdog);
        if (world.rank() == 0) code = mine;
      });
    } catch (const core::Error& error) {
      core::log_error(error.what());
      return core::to_int(error.code());
    }
    return code;
  }
};

/// `lockstep train ARGUMENTS --verify-resume`.
Ended verify(const std::string& arguments, runtime::JobRunner& jobs) {
  const Invocation invocation = parse_command_line(words_of("train " + arguments + " --threads 1 --verify-resume"));
  return support::run_ranks({0}, [&](const runtime::Communicator&) {
    if (invocation.error) throw core::Error{*invocation.error};
    return invocation.supervise(jobs);
  });
}

class VerifyResume : public support::InFolder {
 protected:
  static void expect_nothing_left() {
    EXPECT_TRUE(support::files_here().empty()) << support::files_here().begin()->first;
  }

  ThreadJobs jobs_{};
};

const std::string toy = "toy --synthetic-samples 256 --epochs 2 ";

TEST_F(VerifyResume, TellsTheSameBits) {
  jobs_.stop_after = 10;
  const Ended ended = verify(toy + "--nproc 2", jobs_);
  expect_told(
      ended, 0,
      {"info: interrupted on 2 ranks: stopped by SIGTERM after step 10 ", "\nuninterrupted      2           -",
       "\nresumed            2          10", "\nresumed            1          10",
       "\nresumed and uninterrupted runs are bit-identical: weights, losses and all 2 tensors of the checkpoints\n"});
  EXPECT_FALSE(support::has(ended.out, "  no\n"));
  EXPECT_EQ(jobs_.n_run, 4);
  expect_nothing_left();
}

// However short, it is interrupted in the middle.
TEST_F(VerifyResume, InterruptsWhatIsThroughBeforeTheSignalComes) {
  expect_told(verify("toy --max-steps 2 --run-dir r", jobs_), 0,
              {"training ended before the signal", "\nresumed            1           1",
               "\nresumed            2           1", "\nresumed and uninterrupted runs are bit-identical: "});
  EXPECT_EQ(jobs_.n_run, 5);
  expect_nothing_left();
}

TEST_F(VerifyResume, FindsOtherBitsAndKeepsThem) {
  jobs_.added_to_resume = {"--lr", "0.9", "--resume-anyway"};
  expect_told(verify(toy + "--nproc 2", jobs_), 1,
              {"  no\n", "\nresumed on 2 ranks: ", " ULP apart; ", "info: the runs are kept in 'verify-resume'\n"});
  expect_told(lockstep_on(words_of("ckpt diff verify-resume/uninterrupted-2 verify-resume/resumed-2")), 1, {});
  const auto before = support::files_here();

  expect_told(verify(toy, jobs_), 2, {"error: 'verify-resume' exists"});
  EXPECT_TRUE(before == support::files_here());
}

TEST_F(VerifyResume, TellsAJobThatFailsInItsWords) {
  fs::create_directory("d");
  write("d/manifest.json", "nothing");

  expect_told(verify("digits --no-synthetic --data d", jobs_), 2,
              {"info: uninterrupted on 1 rank: failed with exit code 2\nerror: this is not a manifest of shards "
               "(d/manifest.json)\n"});
  EXPECT_EQ(jobs_.n_run, 1);
  fs::remove_all("d");
  expect_nothing_left();
}

/// Whose jobs say nothing, as those of a launcher that cannot start any.
class SilentJobs final : public runtime::JobRunner {
 public:
  int run(const std::vector<std::string>&, const runtime::JobOutput& output, const std::function<int()>&) override {
    support::InFolder::write(output.err, "");
    return 1;
  }
  [[nodiscard]] int asked() const noexcept override { return 0; }
};

TEST_F(VerifyResume, TellsAJobThatFailsWithoutAWord) {
  SilentJobs silent;
  expect_told(verify(toy, silent), 3, {"error: uninterrupted on 1 rank: failed with exit code 1"});
  expect_nothing_left();
}

TEST_F(VerifyResume, EndsWhereAnEndIsAskedFor) {
  for (const int after : {1, 2, 3}) {
    jobs_.n_run = 0;
    jobs_.asked_after = after;
    expect_told(verify(toy, jobs_), 130, {});
    EXPECT_EQ(jobs_.n_run, after);
    expect_nothing_left();
  }
}

TEST_F(VerifyResume, RefusesWhatCannotBeVerified) {
  for (const std::string flags : {"--resume auto --run-dir r", "--dry-run", "--evaluate-only", "--profile", "--compat",
                                  "--save-weights w.h5", "--time-limit 0", "--no-deterministic", "--keep-epochs 1",
                                  "--inject stop:0:save", "--nproc 3", "--max-steps 1"}) {
    const Ended ended = verify("toy " + flags, jobs_);
    expect_told(ended, 2, {"error: ", "expected: "});
    EXPECT_EQ(ended.err.find("error: "), ended.err.rfind("error: ")) << ended.err;
    EXPECT_EQ(ended.out, "");
  }
  EXPECT_EQ(jobs_.n_run, 1) << "that of one step, which has no middle";
  expect_refused(lockstep_on, {"train toy --verify-resume", {"with --nproc N"}});
}

}  // namespace
}  // namespace lockstep::training

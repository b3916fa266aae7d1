// reduce_all from its arguments to its exit code: what it refuses, at any number of ranks and before anything is
// measured, and what it prints.
#include <unistd.h>

#include <filesystem>

#include "reduce_all/run.hpp"
#include "reduce_all/texts.hpp"
#include "support/program.hpp"
#include "support/text.hpp"

namespace lockstep::reduce_all {
namespace {

using support::Ended;
using support::expect_done;
using support::expect_told;

Ended run_line(const std::vector<std::string>& words, int n_ranks) {
  return support::run_ranks(std::vector<int>(static_cast<std::size_t>(n_ranks)),
                            [&](const runtime::Communicator& world) {
                              const CommandLine line = parse_command_line(words);
                              const runtime::Session session{world};
                              runtime::Watchdog watchdog{{}, {}};
                              Progress progress{watchdog, nullptr};
                              return run(session, line, {}, progress);
                            });
}

class ReduceAll : public support::InFolder {};

TEST_F(ReduceAll, RefusesByOneMessageOfOneRank) {
  write("r.json", "old");
  const support::Refused table[] = {
      {"--algorithm rnig", {"did you mean 'ring'"}},
      {"--demo --collective all_gather", {"does not use this"}},
      {"--timeout 0.0001", {"less than a second"}},
      {"--json x --csv ./x", {"are the same"}},
      {"--expect-ranks 5", {"5 ranks"}},
      {"--nproc 7", {"nproc"}},
      {"--json none/r.json", {"cannot write"}},
      {"--csv .", {"cannot write"}},
      {"-b 1E -e 1E", {"more memory"}},
      {"-b 4096G -e 4096G --buffers cold", {"more memory"}},
      {"--algorithm hierarchical", {"several nodes"}},
      {"--algorithm hierarchical --json r.json", {"several nodes"}},
      {"--inject stop:9:timing", {"no rank 9"}},
      {"--inject wrong:0:1000 -e 1K", {"element 1000"}},
      {"--algorithm shm --ranks-per-node 2", {"shm needs all ranks on one node"}, 3},
      {"--collective reduce_scatter --algorithm tree", {"tree does not do reduce_scatter"}},
  };
  for (const support::Refused& refused : table) expect_refused(run_line, refused);
}

TEST_F(ReduceAll, ReplacesNothingThroughTheLinkOfAnotherUser) {
  const bool is_root = geteuid() == 0;
  if (!is_root) GTEST_SKIP() << "only root can lay one";
  write("kept", "kept");
  std::filesystem::create_directory("all");
  std::filesystem::permissions("all", std::filesystem::perms{01777});
  std::filesystem::create_symlink(std::filesystem::absolute("kept"), "all/r.json");
  EXPECT_EQ(lchown("all/r.json", 65534, 65534), 0);
  std::filesystem::create_symlink("all/r.json", "mine");

  for (const char* const line : {"-e 8 --json all/r.json", "-e 8 --json mine"})
    expect_refused(run_line, {line, {"a link that another user has made"}});
}

TEST_F(ReduceAll, PrintsATextOnce) {
  for (const char* const flag : {"--help", "-h", "--version", "--list"}) {
    const Ended ran = expect_done(run_line, flag);
    EXPECT_EQ(ran.err, "");
    EXPECT_EQ(ran.out, text_for(parse_command_line({flag}).options.task));
  }
}

void expect_right(const std::string& line, std::vector<std::string> says = {}) {
  says.insert(says.end(), {"# Out of bounds values : 0 OK\n", "# Avg bus bandwidth    : "});
  expect_told(expect_done(run_line, line), 0, says);
}

TEST_F(ReduceAll, EveryWayToMeasureEndsWithRightResults) {
  expect_right("-e 64 -f 8 -n 6", {"# ranks 1, nodes 1: ", "MPI: ", "# %limit: ", "*\n", "there is no communication"});
  for (const std::string words : {"--in-place", "--buffers dirty", "--buffers cold", "--sync none", "-w 0",
                                  "--collective reduce_scatter --in-place", "--collective all_gather --in-place",
                                  "--collective all_gather", "--collective reduce_scatter -d bfloat16"})
    expect_right("-b 8 -e 2K -f 16 -n 6 " + words);
  expect_right("-d all -o sum -b 8 -e 8 -n 2 -w 1 --algorithm tree,ring");
  expect_right("-d int16,float16 -o all -b 8 -e 8 -n 2 -w 1 --algorithm tree,shm");
}

TEST_F(ReduceAll, CallsNothingRightThatWasNotLookedAt) {
  expect_told(expect_done(run_line, "-b 8 -e 2K -f 16 -n 6 -w 0 -c 0"), 0, {"# Out of bounds values : not checked\n"});
}

TEST_F(ReduceAll, HasARowForEachSizeAndAlgorithm) {
  const Ended ran = expect_done(run_line, "-e 1K -n 10 --algorithm ring,tree");
  std::size_t n_rows = 0;
  for (std::size_t at = 0; (at = ran.out.find(" float32 ", at)) != std::string::npos; ++at) ++n_rows;
  EXPECT_EQ(n_rows, 16U) << ran.out;
}

}  // namespace
}  // namespace lockstep::reduce_all

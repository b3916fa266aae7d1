// reduce_all from its arguments to its exit code: what it refuses, at any number of ranks and before anything is
// measured, and what it prints.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "reduce_all/texts.hpp"
#include "support/reduce_all_program.hpp"
#include "support/set_clock.hpp"
#include "support/text.hpp"

namespace lockstep::reduce_all {
namespace {

using support::Ended;
using support::expect_done;
using support::expect_told;
using support::has;
using support::reduce_all_on;

class ReduceAll : public support::InFolder {};

TEST_F(ReduceAll, RefusesByOneMessageOfOneRank) {
  write("r.json", "old");
  const support::Refused table[] = {
      {"--algorithm rnig", {"did you mean 'ring'"}},
      {"--demo --collective all_gather", {"so this flag has no effect"}},
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
      {"--collective reduce_scatter --algorithm tree", {"tree does not support reduce_scatter"}},
  };
  for (const support::Refused& refused : table) expect_refused(reduce_all_on, refused);
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
    expect_refused(reduce_all_on, {line, {"a link made by another user"}});
}

TEST_F(ReduceAll, PrintsATextOnce) {
  for (const char* const flag : {"--help", "-h", "--version", "--list"}) {
    const Ended ran = expect_done(reduce_all_on, flag);
    EXPECT_EQ(ran.err, "");
    EXPECT_EQ(ran.out, text_for(parse_command_line({flag}).options.task));
  }
}

void expect_right(const std::string& line, std::vector<std::string> says = {}, int n_ranks = 1) {
  says.insert(says.end(), {"# Out of bounds values : 0 OK\n", "# Avg bus bandwidth    : "});
  expect_told(expect_done(reduce_all_on, line, n_ranks), 0, says);
}

TEST_F(ReduceAll, EveryWayToMeasureEndsWithRightResults) {
  expect_right("-e 64 -f 8 -n 6", {"# ranks 1, nodes 1: ", "MPI: ", "# %limit: ", "*\n", "there is no communication"});
  for (const std::string words : {"--in-place", "--buffers dirty", "--buffers cold", "--sync none", "-w 0",
                                  "--collective reduce_scatter --in-place", "--collective all_gather --in-place",
                                  "--collective all_gather", "--collective reduce_scatter -d bfloat16"})
    expect_right("-b 8 -e 2K -f 16 -n 6 " + words);
  expect_right("-d all -o sum -b 8 -e 8 -n 2 -w 1 --algorithm tree,ring");
  expect_right("-d int16,float16 -o all -b 8 -e 8 -n 2 -w 1 --algorithm tree,shm");
  expect_right("-b 4 -e 40 -i 12 --ranks-per-node 2 -g 1 -t 1 -n 6 --verdict",
               {"simulated nodes 2", " hierarchical ", "\nFastest here: ", "\nThe shortest call (4 B) takes "}, 3);
}

TEST_F(ReduceAll, CallsNothingRightThatWasNotLookedAt) {
  expect_told(expect_done(reduce_all_on, "-b 8 -e 2K -f 16 -n 6 -w 0 -c 0"), 0,
              {"# Out of bounds values : not checked\n"});
}

TEST_F(ReduceAll, HasARowForEachSizeAndAlgorithm) {
  const Ended ran =
      expect_done(reduce_all_on, "-e 1K -n 10 --algorithm ring,tree --samples --json r.json --csv r.csv", 2);
  std::size_t n_rows = 0;
  for (std::size_t at = 0; (at = ran.out.find(" float32 ", at)) != std::string::npos; ++at) ++n_rows;
  EXPECT_EQ(n_rows, 16U) << ran.out;
  auto files = support::files_here();
  const auto json = nlohmann::json::parse(files["./r.json"]);
  EXPECT_TRUE(json["complete"]);
  EXPECT_EQ(json["results"].size(), n_rows);
  for (const auto& row : json["results"]) EXPECT_EQ(row["samples_us"].size(), 10U);
  EXPECT_EQ(std::ranges::count(files["./r.csv"], '\n'), n_rows + 1);
}

// In the middle of the first size, too: its row says how many samples there are.
TEST_F(ReduceAll, WhatTimeIsUpBeforeIsNotComplete) {
  for (const auto& [line, says] : {std::pair{"-e 1K -n 10 -f 128 --max-time 20min", " from "},
                                   std::pair{"-b 1K -e 1K -n 10 --algorithm shm --max-time 20min", " fewer samples"}}) {
    const support::SetClock clock{{600}};
    expect_told(expect_done(support::reduce_all_by(clock), std::string{line} + " --json r.json", 2), 0,
                {"# not complete: --max-time ", says, "# Avg bus bandwidth    : "});
    const auto json = nlohmann::json::parse(support::files_here()["./r.json"]);
    EXPECT_FALSE(json["complete"]);
  }
  const support::SetClock still;
  const Ended whole = expect_done(support::reduce_all_by(still), "-e 1K -n 10 -f 128 --max-time 1ms --json r.json", 2);
  EXPECT_FALSE(has(whole.out, "# not complete")) << whole.out;
}

TEST_F(ReduceAll, AFlippedBitIsFoundAndNamed) {
  const auto ran = [](const std::string& words, int n_ranks) {
    return reduce_all_on(support::words_of("-n 10 " + words), n_ranks);
  };
  expect_told(ran("-b 4K -e 4K --json r.json --inject wrong:1:7", 3), 1,
              {"# WRONG: ", " rank 1 on ", ", index 7: expected ", ", found ", "; 1 wrong",
               "# Out of bounds values : 1 FAILED\n"});
  EXPECT_TRUE(has(support::files_here()["./r.json"], "\"wrong\":1"));
  for (const std::string words : {"--collective reduce_scatter", "--collective all_gather --in-place",
                                  "-d bfloat16 -o max", "-d int8 -o avg -w 0"})
    expect_told(ran("-b 1K -e 1K " + words + " --inject wrong:0", 2), 1, {" rank 0 on ", ", index 0: "});
}

// Where ranks share a core, how far cores are apart is not looked at.
TEST_F(ReduceAll, WhatMovingCoresSpoilIsMeasuredAgain) {
  const auto ran = [](const std::string& words) { return expect_done(reduce_all_on, words + " --json r.json", 2); };
  const auto n_marked = [] {
    const auto json = nlohmann::json::parse(support::files_here()["./r.json"]);
    return std::ranges::count_if(json["results"], [](const auto& row) { return row["distance_changed"] == true; });
  };
  const Ended once = ran("-b 8 -e 256 -n 20 --algorithm ring --inject move:40");
  if (!has(once.out, "# cores: a cache line takes")) GTEST_SKIP() << "ranks share a core";
  expect_told(
      once, 0,
      {"# cores moved: sizes were measured again 1 time\n",
       "compare algorithms only within one size: round trip of 8 B to ", " at 100 ns, ", " to 256 B at 400 ns\n"});
  EXPECT_EQ(n_marked(), 0);
  expect_told(ran("-b 8 -e 8 -n 20 --algorithm ring,shm --inject move:2"), 0,
              {"# cores moved: sizes were measured again 2 times\n", " 100>400"});
  EXPECT_EQ(n_marked(), 2);
}

// Any of them may be the only one that there is.
TEST_F(ReduceAll, AProcessThatIsAloneTellsWhateverItsRankIs) {
  for (const int rank : {0, 2}) {
    runtime::LauncherHint hint;
    hint.name = "Open MPI mpirun";
    hint.rank = rank;
    hint.n_ranks = 4;
    const Ended ran = support::run_ranks({0}, [&](const runtime::Communicator& world) {
      return support::run_reduce_all(world, parse_command_line({"-e", "8"}), hint);
    });
    expect_told(ran, 2, {"started 4 processes, but each runs as a single rank", "unset its variables"});
  }
}

TEST_F(ReduceAll, ARankThatIsToBeSlowIsSlowedDown) {
  const Ended ran = support::run_ranks({0, 0}, [](const runtime::Communicator& world) {
    const CommandLine line = parse_command_line({"-e", "8", "-n", "2", "--inject", "delay:1:timing:1"});
    const int exit_code = support::run_reduce_all(world, line);
    EXPECT_EQ(line.options.drill->unreached(), std::vector<std::string>{});
    return exit_code;
  });
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
}

}  // namespace
}  // namespace lockstep::reduce_all

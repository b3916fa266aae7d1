#include "runtime/fault.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "runtime/watch/watchdog.hpp"

namespace lockstep::runtime {
namespace {

using core::Stopwatch;

Fault parse(std::string_view text, FaultTaker taker) { return parse_faults(text, taker).at(0); }

TEST(Fault, FormsAreReadByOneTable) {
  const Fault stop = parse("stop:3:timing", FaultTaker::reduce_all);
  EXPECT_EQ(stop.rank, 3);
  EXPECT_EQ(stop.place, "timing");
  EXPECT_EQ(stop.number, 0u);
  EXPECT_EQ(parse("kill:0:training:12", FaultTaker::train).number, 12u);
  EXPECT_TRUE(parse("late:0:sync:each:100ms", FaultTaker::train).is_each);
  EXPECT_DOUBLE_EQ(parse("late:0:sync:2:100ms", FaultTaker::shard).time.value, 0.1);
  const Fault late = parse("late:1:save:3s", FaultTaker::train);
  EXPECT_EQ(late.number, 0u);
  EXPECT_DOUBLE_EQ(late.time.value, 3);
  const Fault io = parse("io:1:write:4:2", FaultTaker::shard);
  EXPECT_EQ(io.number, 4u);
  EXPECT_EQ(io.amount, 2u);
  EXPECT_EQ(parse("io:1:sync", FaultTaker::shard).number, 1u);
  const Fault flip = parse("flip:fc2.weight:1:7", FaultTaker::train);
  EXPECT_EQ(flip.parameter, "fc2.weight");
  EXPECT_EQ(flip.rank, 1);
  EXPECT_EQ(flip.number, 7u);
  EXPECT_EQ(parse("delay:1:backward:10", FaultTaker::train).place, "backward");
  EXPECT_EQ(parse("delay:1:timing:10", FaultTaker::reduce_all).amount, 10u);
  EXPECT_EQ(parse("wrong:2:17", FaultTaker::reduce_all).number, 17u);
  EXPECT_EQ(parse("wrong:0", FaultTaker::reduce_all).number, 0u);
  EXPECT_EQ(parse("move:3", FaultTaker::reduce_all).number, 3u);
  const std::vector<Fault> both = parse_faults("stop:1:save,io:0:sync:2", FaultTaker::train);
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[1].text, "io:0:sync:2");
}

TEST(Fault, EverythingElseIsRefused) {
  struct Case {
    FaultTaker taker;
    std::vector<const char*> texts;
  };
  for (const Case& c :
       {Case{FaultTaker::reduce_all,
             {"",           "stop",       "stop:1",        "stop:x:init",     "stop:1:never",    "stop:-1:init",
              "wrong",      "wrong:",     "wrong:1:x",     "wrong:1:2:3",     "halt:1:init",     "move",
              "move:0",     "move:x",     "move:1:2",      "delay:1",         "delay:1:timing",  "delay:1:save:9",
              "delay:1:10", "slow:1:10",  "stop:1:init:0", "stop:1:init:2:3", "stop:1:training", "stop:1:save",
              "io:1:write", "flip:w:0:1", "stop:1:init,",  "late:1:init"}},
        Case{FaultTaker::train, {"flip:w:0",       "flip:w:0:0",        "flip:w:x:1",        "flip:w:0:1:2",
                                 "io:1:save",      "io:1:write:0",      "io:1:write:1:0",    "io:1:write:1:1:1",
                                 "late:1:save:x",  "late:1:save:1:x",   "stop:1:timing",     "wrong:1",
                                 "move:1",         "stop:1:training:x", "delay:1:timing:10", "delay:1:training:10",
                                 "delay:1:save:0", "delay:1:save:x",    "delay:1:save:1:1",  "late:1:forward:1s"}},
        Case{FaultTaker::shard, {"flip:w:0:1", "delay:1:save:10", "stop:1:training", "wrong:1"}}})
    for (const char* text : c.texts) EXPECT_THROW(static_cast<void>(parse_faults(text, c.taker)), core::Error) << text;
}

TEST(Fault, HelpNamesWhatIsTakenAndNothingElse) {
  EXPECT_NE(fault_help(FaultTaker::train).find("flip:PARAMETER:RANK:STEP"), std::string::npos);
  EXPECT_EQ(fault_help(FaultTaker::train).find("wrong:"), std::string::npos);
  EXPECT_NE(fault_help(FaultTaker::reduce_all).find("wrong:"), std::string::npos);
  EXPECT_NE(fault_help(FaultTaker::reduce_all).find("move:N "), std::string::npos);
  EXPECT_NE(fault_help(FaultTaker::train).find("left (after MPI_Finalize)"), std::string::npos);
  EXPECT_EQ(fault_help(FaultTaker::shard).find("training"), std::string::npos);
}

TEST(Drill, RanksAndStepsThatThereAreNotAreRefused) {
  const Drill drill{parse_faults("stop:2:training:5", FaultTaker::train)};
  EXPECT_THROW(drill.require_ranks(2), core::Error);
  EXPECT_NO_THROW(drill.require_ranks(3));
  EXPECT_THROW(drill.require_steps(4), core::Error);
  EXPECT_NO_THROW(drill.require_steps(5));
}

/// How a process ends, or stops, that reaches `places` in turn.
int fate(std::string_view fault, int rank, const std::vector<std::pair<std::string_view, std::uint64_t>>& places) {
  const pid_t child = fork();
  if (child == 0) {
    Drill drill{parse_faults(fault, FaultTaker::train)};
    drill.set_rank(rank);
    for (const auto& [place, number] : places) number > 0 ? drill.reach(place, number) : drill.reach(place);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, WUNTRACED);
  if (WIFSTOPPED(status)) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    return WSTOPSIG(status);
  }
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST(Drill, SignalsComeToTheNamedRankAtTheNamedPlace) {
  EXPECT_EQ(fate("stop:1:save", 1, {{"setup", 0}, {"save", 0}}), SIGSTOP);
  EXPECT_EQ(fate("kill:1:save", 1, {{"save", 0}}), SIGKILL);
  EXPECT_EQ(fate("term:1:save", 1, {{"save", 0}}), SIGTERM);
  EXPECT_EQ(fate("kill:1:save", 0, {{"save", 0}}), 0);
  EXPECT_EQ(fate("kill:1:save", 1, {{"setup", 0}, {"finish", 0}}), 0);
  EXPECT_EQ(fate("kill:1:save:2", 1, {{"save", 0}}), 0);
  EXPECT_EQ(fate("kill:1:save:2", 1, {{"save", 0}, {"save", 0}}), SIGKILL);
  EXPECT_EQ(fate("kill:0:training:7", 0, {{"training", 0}, {"training", 6}, {"training", 8}}), 0);
  EXPECT_EQ(fate("kill:0:training:7", 0, {{"training", 0}, {"training", 6}, {"training", 7}}), SIGKILL);
  EXPECT_EQ(fate("kill:0:training", 0, {{"training", 0}}), 0);
  EXPECT_EQ(fate("kill:0:training", 0, {{"training", 1}}), SIGKILL);
}

TEST(Drill, WatchdogTellsOfPhasesAndUnits) {
  Drill drill{parse_faults("late:0:save:1ms,late:0:training:3:1ms,late:0:evaluation:1:1ms", FaultTaker::train)};
  Watchdog watchdog{{}, {0}, &drill};
  watchdog.enter(Activity::training);
  watchdog.set_unit(2);
  EXPECT_EQ(drill.unreached().size(), 3u);
  watchdog.set_unit(3);
  EXPECT_EQ(drill.unreached(), (std::vector<std::string>{"late:0:save:1ms", "late:0:evaluation:1:1ms"}));
  watchdog.enter(Activity::save);
  EXPECT_EQ(drill.unreached(), std::vector<std::string>{"late:0:evaluation:1:1ms"});
}

TEST(Drill, WritesFailFromTheNthOnSoManyTimes) {
  Drill drill{parse_faults("io:0:sync:2:2", FaultTaker::train)};
  EXPECT_EQ(drill.write("write"), 0);
  std::vector<int> errors;
  for (int i = 0; i < 4; ++i) errors.push_back(drill.write("sync"));
  EXPECT_EQ(errors, (std::vector<int>{0, EIO, EIO, 0}));
  drill.set_rank(1);
  EXPECT_EQ(drill.write("sync"), 0);
}

TEST(Drill, EachTimeIsLate) {
  Drill drill{parse_faults("late:0:write:each:20ms,late:0:sync:2:20ms", FaultTaker::train)};
  const Stopwatch watch;
  EXPECT_EQ(drill.write("write"), 0);
  EXPECT_EQ(drill.write("write"), 0);
  EXPECT_GE(watch.elapsed().value, 0.04);
}

TEST(Drill, FlipsOnceBeforeTheStep) {
  Drill drill{parse_faults("flip:a:0:2,flip:b:1:2,flip:c:0:3", FaultTaker::train)};
  EXPECT_TRUE(drill.take_flips(1).empty());
  EXPECT_EQ(drill.take_flips(2), std::vector<std::string>{"a"});
  EXPECT_TRUE(drill.take_flips(2).empty());
  EXPECT_EQ(drill.unreached(), std::vector<std::string>{"flip:c:0:3"});
  EXPECT_EQ(drill.named("flip").size(), 3u);
}

TEST(Drill, MovesTheCoresAfterSoManyLooksAndBack) {
  Drill drill{parse_faults("move:2", FaultTaker::reduce_all)};
  std::vector<double> seen;
  for (int i = 0; i < 6; ++i) seen.push_back(drill.distance(77));
  EXPECT_EQ(seen, (std::vector<double>{100, 100, 400, 400, 100, 100}));
  EXPECT_EQ(Drill{parse_faults("wrong:0", FaultTaker::reduce_all)}.distance(77), 77);
}

TEST(Drill, SlowsDownTheNamedRankInProportion) {
  Drill drill{parse_faults("delay:1:timing:50", FaultTaker::reduce_all)};
  const std::vector<std::string> never{"delay:1:timing:50"};
  drill.slow_down("timing", core::Seconds{3600});  // for rank 0: returns at once
  drill.set_rank(1);
  drill.slow_down("warmup", core::Seconds{3600});
  EXPECT_EQ(drill.unreached(), never);
  const Stopwatch watch;
  drill.slow_down("timing", core::Seconds{0.02});
  EXPECT_GE(watch.elapsed().value, 0.01);
  EXPECT_EQ(drill.unreached(), std::vector<std::string>{});
}

TEST(Drill, NamesOneElementOnceOnTheNamedRank) {
  Drill drill{parse_faults("wrong:1:2", FaultTaker::reduce_all)};
  EXPECT_TRUE(drill.is_of_checks());
  EXPECT_EQ(drill.take_wrong(4), std::nullopt);
  drill.set_rank(1);
  EXPECT_EQ(drill.take_wrong(2), std::nullopt);  // has no element 2: the drill waits for one that has
  EXPECT_EQ(drill.take_wrong(4), 2u);
  EXPECT_EQ(drill.take_wrong(4), std::nullopt);
}

}  // namespace
}  // namespace lockstep::runtime

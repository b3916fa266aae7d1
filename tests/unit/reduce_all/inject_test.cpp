#include "reduce_all/inject.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "core/error.hpp"

namespace lockstep::reduce_all {
namespace {

TEST(Inject, ParsesAllFaults) {
  const Injection stop = parse_injection("stop:3:timing");
  EXPECT_EQ(stop.kind, Injection::Kind::stop);
  EXPECT_EQ(stop.rank, 3);
  EXPECT_EQ(stop.phase, runtime::Activity::timing);
  const Injection wrong = parse_injection("wrong:2:17");
  EXPECT_EQ(wrong.kind, Injection::Kind::wrong);
  EXPECT_EQ(wrong.rank, 2);
  EXPECT_EQ(wrong.index, 17u);
  EXPECT_EQ(parse_injection("wrong:0").index, 0u);
  EXPECT_EQ(parse_injection("move:3").kind, Injection::Kind::move);
  EXPECT_EQ(parse_injection("move:3").index, 3u);
}

TEST(Inject, RefusesEverythingElse) {
  for (const char* text :
       {"",       "stop",      "stop:1",      "stop:x:init",   "stop:1:never", "stop:-1:init", "wrong",
        "wrong:", "wrong:1:x", "wrong:1:2:3", "stop:1:init:2", "halt:1:init",  "move",         "move:0",
        "move:x", "move:1:2",  "slow:1",      "slow:1:0",      "slow:1:x",     "slow:-1:10",   "slow:1:10:2"})
    EXPECT_THROW(static_cast<void>(parse_injection(text)), core::Error) << text;
}

TEST(Inject, MovesTheCoresAfterSoManyLooksAndBack) {
  Drill drill{parse_injection("move:2")};
  std::vector<double> seen;
  for (int i = 0; i < 6; ++i) seen.push_back(drill.distance(77));
  EXPECT_EQ(seen, (std::vector<double>{100, 100, 400, 400, 100, 100}));
  EXPECT_EQ(Drill{parse_injection("wrong:0")}.distance(77), 77);
}

TEST(Inject, SlowsDownTheNamedRankInProportion) {
  const Drill drill{parse_injection("slow:1:100")};
  const core::Stopwatch watch;
  while (watch.elapsed().value < 0.01) {
  }
  const double before = watch.elapsed().value;
  drill.slow_down(watch, 1);
  EXPECT_GE(watch.elapsed().value, 2 * before);
  const core::Stopwatch another;
  Drill{parse_injection("wrong:1")}.slow_down(another, 1);
  drill.slow_down(another, 0);
  EXPECT_LT(another.elapsed().value, 1);  // both return at once
}

TEST(Inject, NamesOneElementOnceOnTheNamedRank) {
  Drill drill{parse_injection("wrong:1:2")};
  EXPECT_EQ(drill.take_wrong(4, 0), std::nullopt);
  EXPECT_EQ(drill.take_wrong(2, 1), std::nullopt);  // has no element 2: the drill waits for one that has
  EXPECT_EQ(drill.take_wrong(4, 1), 2u);
  EXPECT_EQ(drill.take_wrong(4, 1), std::nullopt);
}

}  // namespace
}  // namespace lockstep::reduce_all

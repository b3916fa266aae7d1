#include "metrics/phase_timers.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "core/timer.hpp"

namespace lockstep::metrics {
namespace {

constexpr double pause_s = 0.004;

void pause() { std::this_thread::sleep_for(std::chrono::duration<double>{pause_s}); }

TEST(PhaseTimers, EveryPhaseHasAName) {
  std::set<std::string_view> names;
  for (const Phase phase : all_phases) {
    names.insert(name(phase));
    EXPECT_EQ(all_phases[static_cast<std::size_t>(phase)], phase);
  }
  EXPECT_EQ(names.size(), all_phases.size());
}

TEST(PhaseTimers, GivesEachPhaseItsTime) {
  PhaseTimers timers;
  pause();
  timers.begin(Phase::forward);
  pause();
  pause();
  timers.end();
  {
    const PhaseTimers::Scope scope{timers, Phase::optimizer};
    pause();
  }
  const PhaseTimes sums = timers.sums();
  EXPECT_GE(sums[Phase::other], pause_s);
  EXPECT_GE(sums[Phase::forward], 2 * pause_s);
  EXPECT_GE(sums[Phase::optimizer], pause_s);
  EXPECT_EQ(sums[Phase::backward], 0);
}

TEST(PhaseTimers, AnInnerPhaseInterruptsTheOuter) {
  const core::Stopwatch watch;
  PhaseTimers timers;
  timers.begin(Phase::backward);
  pause();
  timers.begin(Phase::communication);
  pause();
  timers.end();
  pause();
  timers.end();
  const PhaseTimes sums = timers.sums();
  EXPECT_GE(sums[Phase::communication], pause_s);
  EXPECT_GE(sums[Phase::backward], 2 * pause_s) << "it goes on after the interruption";
  EXPECT_LE(sums.total().value, watch.elapsed().value) << "no time is counted twice";
}

TEST(PhaseTimers, EvaluationAndSaveKeepWhatTheyDoInside) {
  PhaseTimers timers;
  for (const Phase phase : {Phase::evaluation, Phase::save}) {
    timers.begin(phase);
    timers.begin(Phase::forward);
    timers.begin(Phase::data_wait);
    pause();
    timers.end();
    timers.end();
    timers.end();
  }
  const PhaseTimes sums = timers.sums();
  EXPECT_EQ(sums[Phase::forward], 0);
  EXPECT_EQ(sums[Phase::data_wait], 0);
  EXPECT_GE(sums[Phase::evaluation], pause_s);
  EXPECT_GE(sums[Phase::save], pause_s);
  EXPECT_LT(sums.of_steps().value, 2 * pause_s);
}

TEST(PhaseTimers, ALapHoldsOneStep) {
  PhaseTimers timers;
  timers.begin(Phase::forward);
  pause();
  timers.end();
  const PhaseTimes first = timers.lap();
  timers.begin(Phase::optimizer);
  pause();
  timers.end();
  const PhaseTimes second = timers.lap();
  EXPECT_GE(first[Phase::forward], pause_s);
  EXPECT_EQ(first[Phase::optimizer], 0);
  EXPECT_EQ(second[Phase::forward], 0);
  EXPECT_GE(second[Phase::optimizer], pause_s);
  PhaseTimes both = first;
  both += second;
  EXPECT_NEAR(both.total().value, timers.sums().total().value, pause_s);
}

TEST(PhaseTimers, TimeCanBeReassignedButNotMade) {
  PhaseTimers timers;
  timers.begin(Phase::optimizer);
  pause();
  timers.end();
  timers.reassign(Phase::optimizer, Phase::communication, {pause_s / 2});
  const PhaseTimes lap = timers.lap();
  EXPECT_DOUBLE_EQ(lap[Phase::communication], pause_s / 2);
  EXPECT_GE(lap[Phase::optimizer], pause_s / 2 * 0.999);
  EXPECT_EQ(timers.sums()[Phase::communication], lap[Phase::communication]) << "in the sums too";
  timers.reassign(Phase::optimizer, Phase::communication, {1000});
  EXPECT_EQ(timers.lap()[Phase::communication], 0) << "the optimizer has not run since the last lap";
}

TEST(PhaseTimers, ThePhaseThatEndsIsToldOnceWithItsOwnTime) {
  PhaseTimers timers;
  std::vector<Phase> ended;
  timers.set_at_end([&](Phase phase, core::Seconds time) {
    ended.push_back(phase);
    EXPECT_GE(time.value, phase != Phase::backward ? pause_s : 0);
    EXPECT_LE(time.value, timers.sums()[phase]);
    pause();
  });
  timers.begin(Phase::backward);
  timers.begin(Phase::communication);
  pause();
  timers.end();
  timers.end();
  timers.begin(Phase::evaluation);
  timers.begin(Phase::forward);
  pause();
  timers.end();
  timers.end();
  EXPECT_EQ(ended, (std::vector{Phase::communication, Phase::backward, Phase::evaluation}));
  EXPECT_GE(timers.sums()[Phase::communication], 2 * pause_s) << "what is called counts as the phase";
}

TEST(PhaseTimers, RefusesWhatDoesNotNest) {
  PhaseTimers timers;
  EXPECT_THROW(timers.end(), core::Error);
  for (int i = 0; i < 7; ++i) timers.begin(Phase::forward);
  EXPECT_THROW(timers.begin(Phase::forward), core::Error);
}

}  // namespace
}  // namespace lockstep::metrics

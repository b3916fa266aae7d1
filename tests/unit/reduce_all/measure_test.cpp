#include "reduce_all/measure.hpp"

#include <gtest/gtest.h>

#include "reduce_all/limit.hpp"

namespace lockstep::reduce_all {
namespace {

TEST(Pace, ShortOperationsAreTimedInBlocksOfAtLeast50Microseconds) {
  const Options options;
  for (const double seconds : {20e-9, 0.3e-6, 9.9e-6}) {
    const Pace pace = choose_pace(options, seconds);
    EXPECT_GE(pace.block * seconds, 50e-6 * (1 - 1e-9)) << seconds;
    EXPECT_LE((pace.block - 1) * seconds, 50e-6) << seconds;
  }
  EXPECT_EQ(choose_pace(options, 10e-6).block, 1);
}

TEST(Pace, SamplesFitTheTimeOfARow) {
  const Options options;
  EXPECT_EQ(choose_pace(options, 1e-6).n_samples, 1000);
  EXPECT_EQ(choose_pace(options, 1e-3).n_samples, 150);
  EXPECT_EQ(choose_pace(options, 1.0).n_samples, 8);
}

TEST(Pace, ARowThatTakesLongerThanForeseenIsCutShort) {
  Options options;
  Contender contender;
  EXPECT_EQ(affordable_samples(options, contender, 125), 125);  // nothing is known yet
  contender.samples.assign(125, 1e-6);
  contender.spent = 0.01;
  EXPECT_EQ(affordable_samples(options, contender, 125), 125);
  contender.spent = 10;
  EXPECT_EQ(affordable_samples(options, contender, 125), 0);
  contender.samples.assign(5, 1e-6);
  EXPECT_EQ(affordable_samples(options, contender, 125), 3);  // 8 in total
  options.iterations = 1000;
  EXPECT_EQ(affordable_samples(options, contender, 125), 125);
}

TEST(Pace, TheTimeOfTheRunEndsTheNumberAskedFor) {
  Options options;
  options.iterations = 1000;
  Contender contender;
  EXPECT_EQ(affordable_samples(options, contender, 1000, true), 3);
  contender.samples.assign(125, 1e-6);
  contender.spent = 0.01;
  EXPECT_EQ(affordable_samples(options, contender, 875, true), 0);
  EXPECT_EQ(affordable_samples(options, contender, 875, false), 875);
}

TEST(Pace, WhatMovingCoresSpoiltIsMeasuredAgainTwiceAndInAQuarterOfTheTime) {
  Options options;
  EXPECT_TRUE(may_measure_again(options, 2, {1e6}));
  EXPECT_FALSE(may_measure_again(options, 3, {0}));
  options.max_time = {40};
  EXPECT_TRUE(may_measure_again(options, 2, {9.9}));
  EXPECT_FALSE(may_measure_again(options, 1, {10}));
}

TEST(Pace, ABatchIsAnEighthOfTheRowOrATenthOfASecond) {
  Contender contender;
  contender.pace = {.block = 2, .n_samples = 1000};
  contender.estimate = 1e-6;
  EXPECT_EQ(plan_batch(contender), 125);
  contender.n_done = 990;
  EXPECT_EQ(plan_batch(contender), 10);
  contender.n_done = 0;
  contender.estimate = 0.01;
  EXPECT_EQ(plan_batch(contender), 5);
  contender.estimate = 1;
  EXPECT_EQ(plan_batch(contender), 1);
  contender.samples.assign(10, 1e-3);  // measurements count for more than the estimate
  contender.spent = 0.01;
  EXPECT_EQ(plan_batch(contender), 100);
}

TEST(Pace, TheNumberAskedForIsTheNumberTaken) {
  Options options;
  options.iterations = 3;
  EXPECT_EQ(choose_pace(options, 1e-6).n_samples, 3);
  EXPECT_EQ(choose_pace(options, 1.0).n_samples, 3);
}

TEST(Pace, PreparedBuffersForbidBlocks) {
  Options options;
  options.buffers = BufferMode::cold;
  EXPECT_EQ(choose_pace(options, 1e-6).block, 1);
  options.buffers = BufferMode::dirty;
  EXPECT_EQ(choose_pace(options, 1e-6).block, 1);
}

comm::Call call_of(comm::Collective collective) {
  return {.collective = collective, .dtype = core::DType::int8, .n_elements = 1000};
}

TEST(Limit, HalvesMoveLessThanAnAllReduce) {
  const LimitTimes times{.copying = {1e-6}};
  EXPECT_DOUBLE_EQ(find_limit(call_of(comm::Collective::all_reduce), times, 4).GBps, 1.0);
  EXPECT_DOUBLE_EQ(find_limit(call_of(comm::Collective::reduce_scatter), times, 4).GBps, 1.6);
  EXPECT_DOUBLE_EQ(find_limit(call_of(comm::Collective::all_gather), times, 1).GBps, 1.0);
}

TEST(Limit, EveryRankReadsWhatOthersAddUpOrBring) {
  EXPECT_EQ(bytes_from_others(call_of(comm::Collective::all_reduce), 2).value, 1000u);
  EXPECT_EQ(bytes_from_others(call_of(comm::Collective::all_reduce), 4).value, 1500u);
  EXPECT_EQ(bytes_from_others(call_of(comm::Collective::reduce_scatter), 4).value, 750u);
  EXPECT_EQ(bytes_from_others(call_of(comm::Collective::all_gather), 1).value, 0u);
  EXPECT_EQ(bytes_to_read(call_of(comm::Collective::all_reduce), 2, {1 << 20}).value, 65536u);
  EXPECT_EQ(bytes_to_read({.n_elements = 50'000}, 2, {1 << 20}).value, 200'000u);
  EXPECT_EQ(bytes_to_read({.n_elements = 1'000'000}, 2, {1 << 20}).value, 0u) << "not in the caches";
}

TEST(Limit, TheSlowerOfCopyingAndReadingBinds) {
  const comm::Call call = call_of(comm::Collective::all_reduce);
  // For a tenth of the bytes that were read: the time of a line, plus a tenth of the rest.
  LimitTimes times{.copying = {1e-7}, .one_way = {5e-8}, .reading = {1e-6}, .read = {10'000}};
  Limit limit = find_limit(call, times, 2);
  EXPECT_DOUBLE_EQ(limit.GBps, 1000 / 145.0);
  EXPECT_EQ(limit.by, LimitedBy::cores);
  times.read = {1000};
  EXPECT_DOUBLE_EQ(find_limit(call, times, 2).GBps, 1);
  times.copying = {1e-5};
  limit = find_limit(call, times, 2);
  EXPECT_DOUBLE_EQ(limit.GBps, 0.1);
  EXPECT_EQ(limit.by, LimitedBy::copying);
}

TEST(Limit, RanksThatNeedNothingOfEachOtherDoNotWait) {
  const LimitTimes times{.copying = {1e-9}, .one_way = {1e-6}, .reading = {1e-6}, .read = {65'536}};
  EXPECT_EQ(find_limit({.n_elements = 1}, times, 4).by, LimitedBy::cores);
  EXPECT_EQ(find_limit({.collective = comm::Collective::all_gather, .n_elements = 1}, times, 4).by, LimitedBy::copying);
  EXPECT_EQ(find_limit({.collective = comm::Collective::all_gather, .n_elements = 4}, times, 4).by, LimitedBy::cores);
}

TEST(Limit, LinksCarryWhatOthersHaveOrOnceWhatSwitchesAddUp) {
  for (const bool switches_add : {false, true}) {
    EXPECT_EQ(bytes_over_links(call_of(comm::Collective::reduce_scatter), 4, switches_add).value, 750U);
    EXPECT_EQ(bytes_over_links(call_of(comm::Collective::all_gather), 4, switches_add).value, 750U);
    EXPECT_EQ(bytes_over_links(call_of(comm::Collective::all_reduce), 2, switches_add).value, 1000U);
    EXPECT_EQ(bytes_over_links(call_of(comm::Collective::all_reduce), 1, switches_add).value, 0U);
  }
  EXPECT_EQ(bytes_over_links(call_of(comm::Collective::all_reduce), 4, false).value, 1500U);
  EXPECT_EQ(bytes_over_links(call_of(comm::Collective::all_reduce), 4, true).value, 1000U);
}

TEST(Limit, FourToSixtyFourMebibytesAreExchanged) {
  const comm::Call between{.n_elements = 4 << 20};  // float32
  const comm::Call most{.n_elements = std::size_t{1} << 30};
  EXPECT_EQ(bytes_to_exchange({.n_elements = 1}, 2).value, 4U << 20);
  EXPECT_EQ(bytes_to_exchange(between, 4).value, 24U << 20);
  EXPECT_EQ(bytes_to_exchange(most, 4).value, 64U << 20);
  EXPECT_EQ(largest_exchange({{between, most, between}}, 4).value, 64U << 20);
  EXPECT_EQ(largest_exchange({{{.n_elements = 1}, between}}, 4).value, 24U << 20);
}

TEST(Limit, TheSlowestOfAllBinds) {
  const comm::Call call = call_of(comm::Collective::all_reduce);
  // 1500 B of 3000 B: half of the time.
  LimitTimes times{.copying = {1e-6}, .exchanging = {4e-6}, .exchanged = {3000}};
  Limit limit = find_limit(call, times, 4);
  EXPECT_DOUBLE_EQ(limit.GBps, 0.5);
  EXPECT_EQ(limit.by, LimitedBy::links);
  EXPECT_EQ(name(limit.by), "links");
  times.switches_add = true;
  EXPECT_DOUBLE_EQ(find_limit(call, times, 4).GBps, 0.75);
  EXPECT_DOUBLE_EQ(find_limit(call_of(comm::Collective::all_gather), times, 4).GBps, 1);
  times.copying = {2e-6};
  EXPECT_EQ(find_limit(call, times, 4).by, LimitedBy::copying);
  times.reading = {5e-6};
  times.read = {1500};
  EXPECT_EQ(find_limit(call, times, 4).by, LimitedBy::cores);
  times.exchanging = {4e-5};
  EXPECT_EQ(find_limit(call, times, 4).by, LimitedBy::links);
  times.exchanged = {};
  EXPECT_EQ(find_limit(call, times, 4).by, LimitedBy::cores) << "nothing was exchanged";
}

TEST(Limit, BothProbesCopy) {
  for (const CopyKind kind : {CopyKind::cached, CopyKind::streaming}) {
    std::vector<std::byte> input(1000, std::byte{7});
    std::vector<std::byte> output(1000);
    const auto plan = make_copy_plan(kind);
    plan->bind(input, output);
    plan->run();
    EXPECT_EQ(input, output);
  }
}

}  // namespace
}  // namespace lockstep::reduce_all

#include "report/comparison.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "core/rng.hpp"

namespace lockstep::report {
namespace {

Subject ring(std::uint64_t bytes) { return {"all_reduce", false, "float32", "sum", "ring", bytes}; }

// n visits around `time_us`, 0.1 % apart.
std::vector<Visit> visits(int n, double time_us, std::optional<double> distance = 100) {
  std::vector<Visit> all;
  for (int i = 0; i < n; ++i) all.push_back({time_us * (1 + 0.001 * (i - n / 2)), distance});
  return all;
}

Results launch(std::vector<Series> series) { return {.name = "b.json", .facts = {}, .series = std::move(series)}; }

Comparison compare_one(std::vector<Visit> before, std::vector<Visit> now, double tolerance = 0.05) {
  const std::vector<Results> old{launch({{ring(8), std::move(before)}})}, fresh{launch({{ring(8), std::move(now)}})};
  return compare(old, fresh, tolerance);
}

TEST(Comparison, TellsSlowerFasterAndSame) {
  const struct {
    double now_us;
    Verdict verdict;
  } cases[]{{10, Verdict::same}, {10.3, Verdict::same}, {11, Verdict::slower}, {9, Verdict::faster}};
  for (const auto& [now_us, verdict] : cases) {
    const Comparison c = compare_one(visits(10, 10), visits(10, now_us));
    ASSERT_EQ(c.rows.size(), 1u);
    const Compared& row = c.rows.front();
    EXPECT_EQ(row.verdict, verdict) << now_us;
    EXPECT_NEAR(*row.ratio, now_us / 10, 1e-3);
    EXPECT_NEAR(*row.before_us, 10, 0.02);
    EXPECT_EQ(row.n_pairs, 100u);
    EXPECT_EQ(c.is_slower(), verdict == Verdict::slower);
  }
  EXPECT_FALSE(compare_one(visits(10, 10), visits(10, 11), 0.15).is_slower());
}

TEST(Comparison, SaysFromWhereOnItWouldHaveTold) {
  const Compared same = compare_one(visits(10, 10), visits(10, 10)).rows.front();
  ASSERT_TRUE(same.told_from);
  EXPECT_GT(*same.told_from, 1.05);
  EXPECT_LT(*same.told_from, 1.06);
  EXPECT_TRUE(compare_one(visits(10, 10), visits(10, 10 * *same.told_from * 1.001)).is_slower());
  EXPECT_FALSE(compare_one(visits(10, 10), visits(10, 10 * *same.told_from * 0.999)).is_slower());
}

TEST(Comparison, NoiseIsToldApartFromSameness) {
  std::vector<Visit> wild = visits(10, 10);
  for (std::size_t i = 0; i < wild.size(); i += 2) wild[i].time_us *= 1.6;
  EXPECT_EQ(compare_one(wild, visits(10, 10)).rows.front().verdict, Verdict::noisy);
  // However far apart, so few visits prove nothing.
  const Compared few = compare_one(visits(2, 10), visits(2, 30)).rows.front();
  EXPECT_EQ(few.verdict, Verdict::noisy);
  EXPECT_FALSE(few.told_from);
}

// A greater distance between cores makes calls slow, which is not a regression.
TEST(Comparison, OnlyVisitsWithCoresEquallyFarApartArePairs) {
  const Comparison elsewhere = compare_one(visits(10, 10, 100), visits(10, 30, 400));
  EXPECT_EQ(elsewhere.rows.front().verdict, Verdict::noisy);
  EXPECT_EQ(elsewhere.rows.front().remark, "no visits of both sides have the same distance between cores");
  EXPECT_FALSE(elsewhere.rows.front().ratio);

  std::vector<Visit> before = visits(6, 10, 100), now = visits(3, 10, 110);
  for (const Visit& far : visits(3, 30, 400)) before.push_back(far);
  for (const Visit& far : visits(6, 30, 380)) now.push_back(far);
  const Compared mixed = compare_one(before, now).rows.front();
  EXPECT_EQ(mixed.n_pairs, 36u);
  EXPECT_EQ(mixed.verdict, Verdict::same);
  for (Visit& visit : now) visit.time_us *= 1.2;
  EXPECT_EQ(compare_one(before, now).rows.front().verdict, Verdict::slower);
}

TEST(Comparison, PoolsLaunches) {
  std::vector<Results> before, now;
  for (int i = 0; i < 5; ++i) {
    before.push_back(launch({{ring(8), visits(1, 10 + 0.01 * i)}}));
    now.push_back(launch({{ring(8), visits(1, 12 + 0.01 * i)}}));
  }
  EXPECT_EQ(compare(before, now, 0.05).rows.front().verdict, Verdict::slower);
  EXPECT_EQ(compare(std::span{before}.first(1), now, 0.05).rows.front().verdict, Verdict::noisy);  // 1 of 6 orders
}

TEST(Comparison, WhatIsOnOneSideOnlyIsNamed) {
  const std::vector<Results> before{launch({{ring(8), visits(10, 10)}, {ring(16), visits(10, 10)}})};
  const std::vector<Results> now{launch({{ring(32), visits(10, 10)}, {ring(8), visits(10, 10)}})};
  const Comparison c = compare(before, now, 0.05);
  ASSERT_EQ(c.rows.size(), 3u);
  EXPECT_EQ(c.rows[0].verdict, Verdict::same);
  EXPECT_EQ(c.rows[1].verdict, Verdict::added);
  EXPECT_EQ(c.rows[1].subject.bytes, 32u);
  EXPECT_EQ(c.rows[2].verdict, Verdict::gone);
  EXPECT_FALSE(c.is_slower());
  const std::string text = to_text(c);
  EXPECT_NE(text.find("# not measured now: ring float32 sum at 16 B\n"), std::string::npos) << text;
  EXPECT_NE(text.find("# not in the baseline: ring float32 sum at 32 B\n"), std::string::npos) << text;
}

TEST(Comparison, WhatOnlyAPooledLaunchMeasuredIsComparedToo) {
  const std::vector<Results> before{launch({{ring(8), visits(10, 10)}, {ring(16), visits(10, 10)}})};
  const std::vector<Results> now{launch({{ring(8), visits(10, 10)}}), launch({{ring(16), visits(10, 12)}})};
  const Comparison c = compare(before, now, 0.05);
  ASSERT_EQ(c.rows.size(), 2u);
  EXPECT_EQ(c.rows[1].verdict, Verdict::slower);
}

TEST(Comparison, ARunThatEndedEarlyDoesNotPass) {
  const std::vector<Results> before{launch({{ring(8), visits(10, 10)}, {ring(16), visits(10, 10)}})};
  std::vector<Results> now{launch({{ring(8), visits(10, 10)}})};
  EXPECT_TRUE(compare(before, now, 0.05).is_passed());  // 16 B was not requested
  now.front().is_complete = false;
  const Comparison c = compare(before, now, 0.05);
  EXPECT_FALSE(c.is_passed());
  EXPECT_FALSE(c.is_slower());
  EXPECT_TRUE(to_text(c).ends_with("# Regression           : UNFINISHED: the run ended before 1 of 2 rows\n"));
  EXPECT_NE(to_junit(c).find("failures=\"1\""), std::string::npos) << to_junit(c);
  // A baseline of such a run is valid, and the output says so.
  const Comparison old = compare(now, before, 0.05);
  EXPECT_TRUE(old.is_passed());
  EXPECT_EQ(old.changes, std::vector<std::string>{"b.json comes from a run that ended early"});
  now.front().n_wrong = 5;
  EXPECT_EQ(compare(now, before, 0.05).changes,
            (std::vector<std::string>{"b.json comes from a run that ended early", "b.json has wrong elements: 5"}));
}

// One of many rows needs more certainty than a single row.
TEST(Comparison, IsStricterTheMoreRowsThereAre) {
  std::vector<Series> before, now;
  for (std::uint64_t bytes = 1; bytes <= 200; ++bytes) {
    before.push_back({ring(bytes), visits(5, 10)});
    now.push_back({ring(bytes), visits(5, bytes == 1 ? 12 : 10)});
  }
  const std::vector<Results> old{launch(before)}, fresh{launch(now)};
  EXPECT_FALSE(compare(old, fresh, 0.05).is_slower());
  const std::vector<Results> one_before{launch({before.front()})}, one_now{launch({now.front()})};
  EXPECT_TRUE(compare(one_before, one_now, 0.05).is_slower());
}

// `n_rows` of ten visits with independent noise; rows of a round share `drift`.
std::vector<Results> noisy_launch(int n_rows, double factor,
                                  const std::vector<double>& drift = std::vector<double>(10, 1)) {
  std::vector<Series> series;
  core::Random random{static_cast<std::uint64_t>(factor * 1000)};
  for (int row = 0; row < n_rows; ++row) {
    std::vector<Visit> all;
    for (const double common : drift)
      all.push_back({10 * (row + 1) * factor * common * std::exp(0.3 * (random.uniform() - 0.5)), 100});
    series.push_back({ring(static_cast<std::uint64_t>(row + 1)), all});
  }
  return {launch(std::move(series))};
}

TEST(Comparison, TellsOfAllRowsTogetherWhatItCannotTellOfAny) {
  const Comparison slower = compare(noisy_launch(40, 1), noisy_launch(40, 1.1), 0.05);
  EXPECT_EQ(slower.count(Verdict::slower), 0u);
  ASSERT_TRUE(slower.overall);
  EXPECT_EQ(slower.overall->verdict, Verdict::slower);
  EXPECT_NEAR(*slower.overall->ratio, 1.1, 0.02);
  EXPECT_EQ(slower.overall->n_now, 10u);
  EXPECT_TRUE(slower.is_slower());
  EXPECT_NE(to_text(slower).find("# Regression           : SLOWER by more than 5 %: ring float32 sum at "),
            std::string::npos);
  EXPECT_TRUE(to_json(slower)["slower"].get<bool>());
  EXPECT_NE(to_junit(slower).find("name=\"all rows together\"><failure"), std::string::npos);

  const Comparison same = compare(noisy_launch(40, 1), noisy_launch(40, 1.001), 0.05);
  EXPECT_FALSE(same.is_slower());
  EXPECT_EQ(same.overall->verdict, Verdict::same);
}

// What all rows of a round have in common does not average out, and proves nothing either.
TEST(Comparison, RoundsThatDifferAmongThemselvesTellLess) {
  const std::vector<double> drift{0.7, 1.5, 0.8, 1.4, 0.9, 1.3, 1, 1.2, 0.75, 1.6};
  EXPECT_FALSE(compare(noisy_launch(40, 1, drift), noisy_launch(40, 1.1, drift), 0.05).is_slower());
}

// Five launches per side: a difference between launches is no regression, however certain each launch is.
TEST(Comparison, LaunchesSpeakForThemselves) {
  const auto launches = [](std::initializer_list<double> factors, int n_rows) {
    std::vector<Results> all;
    for (const double factor : factors) all.push_back(noisy_launch(n_rows, factor).front());
    return all;
  };
  const auto before = launches({1, 1.12, 0.95, 1.2, 1.02}, 40);
  const Comparison same = compare(before, launches({1.1, 1.25, 0.98, 1.13, 1.01}, 40), 0.05);
  EXPECT_TRUE(same.is_by_launch);
  EXPECT_EQ(same.overall->n_before, 5u);
  EXPECT_FALSE(same.is_slower()) << to_text(same);
  // Slower by a tenth, launch for launch, beyond chance and beyond the tolerance.
  const Comparison slower =
      compare(launches({1, 1.03, 0.98, 1.01, 1.02}, 40), launches({1.1, 1.12, 1.08, 1.11, 1.13}, 40), 0.05);
  EXPECT_EQ(slower.overall->verdict, Verdict::slower) << to_text(slower);
  EXPECT_NE(to_text(slower).find("5 launches against 5"), std::string::npos);
  // Beyond chance, but within the tolerance.
  const Comparison little =
      compare(launches({1, 1.003, 0.998, 1.001, 1.002}, 40), launches({1.03, 1.031, 1.029, 1.033, 1.028}, 40), 0.05);
  EXPECT_FALSE(little.is_slower()) << to_text(little);
  // A single row: one launch of five cannot make it slower.
  std::vector<Results> old, fresh;
  for (int i = 0; i < 5; ++i) {
    old.push_back(launch({{ring(8), visits(10, 10)}}));
    fresh.push_back(launch({{ring(8), visits(10, i < 3 ? 12 : 10)}}));
  }
  const Comparison one = compare(old, fresh, 0.05);
  EXPECT_EQ(one.rows.front().verdict, Verdict::noisy) << to_text(one);
  EXPECT_EQ(one.rows.front().remark, "variation between launches is as large");
}

TEST(Comparison, OneRowIsNotTwoLooks) { EXPECT_FALSE(compare_one(visits(10, 10), visits(10, 10)).overall); }

TEST(Comparison, TheLastLineIsTheVerdict) {
  const std::string slower = to_text(compare_one(visits(10, 10), visits(10, 11)));
  EXPECT_TRUE(slower.ends_with("# Regression           : SLOWER by more than 5 %: ring float32 sum at 8 B\n"))
      << slower;
  const std::string same = to_text(compare_one(visits(10, 10), visits(10, 10)));
  EXPECT_TRUE(same.ends_with("# Regression           : nothing is known to be slower by more than 5 %\n")) << same;
  const std::string noise = to_text(compare_one(visits(1, 10), visits(1, 10)));
  EXPECT_NE(noise.find("too few visits to detect a slow-down of any size"), std::string::npos) << noise;
  EXPECT_TRUE(noise.ends_with("too noisy to tell\n")) << noise;
}

TEST(ComparisonJson, HasTheKeysOfItsSchema) {
  const auto schema = nlohmann::json::parse(std::ifstream{LOCKSTEP_SCHEMAS "/reduce_all-1.schema.json"});
  const auto expect_keys = [&schema](const nlohmann::json& object, const char* definition) {
    std::set<std::string> keys, required;
    for (const auto& [key, ignored] : object.items()) keys.insert(key);
    for (const auto& key : schema["$defs"][definition]["required"]) required.insert(key);
    EXPECT_EQ(keys, required);
  };
  const nlohmann::json json = to_json(compare_one(visits(10, 10), visits(10, 11)));
  expect_keys(json, "comparison");
  expect_keys(json["rows"][0], "compared");
  EXPECT_TRUE(json["together"].is_null());
  const nlohmann::json several = to_json(compare(noisy_launch(2, 1), noisy_launch(2, 1.1), 0.05));
  expect_keys(several["together"], "together");
  EXPECT_EQ(json["slower"], true);
  EXPECT_EQ(json["rows"][0]["verdict"], "slower");
  EXPECT_NEAR(json["rows"][0]["change_percent"].get<double>(), 10, 0.2);
  const nlohmann::json alone = to_json(compare_one({}, visits(10, 11)));
  EXPECT_TRUE(alone["rows"][0]["change_percent"].is_null());
}

}  // namespace
}  // namespace lockstep::report

#include "training/doctor/report.hpp"

#include <chrono>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "training/doctor/asked.hpp"
#include "unit/training/doctor/fixture.hpp"

namespace lockstep::training::doctor {
namespace {

using support::has;

TEST(DoctorFinding, IsToldOnceWhereAllAgree) {
  EXPECT_EQ(describe({{"a", "x"}, {"b", "x"}}), "x");
  EXPECT_EQ(describe({{"a", "x"}, {"b", "y"}, {"c", "x"}}), "x on a, c; y on b");
  EXPECT_EQ(describe({{"a", "x"}, {"b", "y"}, {"b", "y"}}), "x on a; y on b");
}

TEST(DoctorFinding, NamesAFewOfMany) {
  Placed<std::string> many{{"z", "y"}};
  for (int i = 0; i < 9; ++i) many.emplace_back("n" + std::to_string(i), "x");
  EXPECT_EQ(describe(many), "y on z; x on n0, n1, n2 and 6 others");
  Placed<std::string> different;
  for (int i = 0; i < 9; ++i) different.emplace_back("n" + std::to_string(i), std::to_string(i));
  EXPECT_EQ(describe(different), "0 on n0; 1 on n1; 2 on n2; 3 on n3; 5 others");
}

TEST(DoctorFinding, MergedIsTheWorst) {
  const Finding good{.seen = "good"}, bad{.verdict = Verdict::fail, .seen = "bad", .fix = "mend it"};
  EXPECT_EQ(merge({{"a", good}, {"b", good}}), good);
  const Finding merged = merge({{"a", good}, {"b", bad}, {"c", skip("nobody knows")}});
  EXPECT_EQ(merged, (Finding{Verdict::fail, "bad on b; good on a; not checked: nobody knows on c", "mend it"}));
  EXPECT_EQ(merge({}).verdict, Verdict::skipped);
}

TEST(DoctorFacts, TravelAsText) {
  Facts facts = healthy_job(1, 1).ranks.front();
  facts.node.unresolved = {"a\nb"};
  EXPECT_EQ(to_text(facts_from_text(to_text(facts))), to_text(facts));
  EXPECT_EQ(facts_from_text(to_text(facts)).node.ports, facts.node.ports);
  EXPECT_EQ(facts_from_text(to_text(facts)).limits.locked_memory, unlimited);
  EXPECT_EQ(to_text(facts).find('\n'), std::string::npos);
  EXPECT_EQ(facts_from_text("{}").slurm_tasks, -1);  // from an older version
  for (const char* const text : {"", "nonsense", "[1]", R"({"host": 1})"})
    EXPECT_THROW(static_cast<void>(facts_from_text(text)), core::Error) << text;
}

TEST(DoctorReport, OfAHealthyJobHasNothingToMend) {
  const std::vector<Judged> all = judge_all(healthy_job(2, 2));
  EXPECT_FALSE(would_fail(all));
  std::set<std::string_view> names;
  for (const auto& [check, finding] : all) {
    names.insert(check);
    EXPECT_LE(finding.verdict, Verdict::ok) << check << ": " << finding.seen;
    EXPECT_FALSE(finding.seen.empty()) << check;
  }
  EXPECT_EQ(names.size(), all.size());
  EXPECT_FALSE(has(describe(all), "fix:"));
  EXPECT_TRUE(has(describe(all), " 0 notes, 0 warnings, 0 would fail, ")) << describe(all);
}

TEST(DoctorReport, ShowsFixesBelow) {
  const std::vector<Judged> all{{"one", {Verdict::warning, "first\nsecond", "mend it"}},
                                {"two", {Verdict::skipped, "not checked: no", ""}},
                                {"three", {Verdict::fail, "broken", "buy another"}}};
  EXPECT_TRUE(would_fail(all));
  EXPECT_EQ(describe(all),
            "check            verdict  seen\n"
            "one              warning  first\n"
            "                          second\n"
            "                          fix: mend it\n"
            "two              skipped  not checked: no\n"
            "three            fail     broken\n"
            "                          fix: buy another\n"
            "3 checks: 0 ok, 0 notes, 1 warning, 1 would fail, 1 not checked\n");
  const auto json = nlohmann::json::parse(to_json(all, healthy_job(2, 1)));
  EXPECT_EQ(json["schema"], "lockstep.doctor");
  EXPECT_EQ(json["would_fail"], true);
  EXPECT_EQ(json["counts"]["warning"], 1);
  EXPECT_EQ(json["checks"][2]["fix"], "buy another");
  EXPECT_EQ(json["meta"]["hosts"], (std::vector<std::string>{"node0", "node1"}));
}

TEST(DoctorAsked, DoesNotWaitForWhatNeverAnswers) {
  std::promise<void> end;
  Asked<int> never{[wait = end.get_future().share()] {
    wait.wait();
    return 1;
  }};
  EXPECT_FALSE(never.within({0.05}));
  end.set_value();
  EXPECT_EQ(Asked<int>{[] { return 2; }}.within({60}), 2);
  Asked<int> throwing{[]() -> int { core::fail_system("broken"); }};
  EXPECT_THROW(static_cast<void>(throwing.within({60})), core::Error);
}

}  // namespace
}  // namespace lockstep::training::doctor

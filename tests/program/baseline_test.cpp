// reduce_all --baseline: what is measured, beside files whose times are made up, so that no verdict depends on speed.
#include <nlohmann/json.hpp>

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
using Json = nlohmann::json;

/// Cores that never move: each visit counts.
const std::string small = "-b 8 -e 32 -f 4 --algorithm ring,shm -n 2 --visits 5 --inject move:1000000 ";
/// Made-up files have these times, in microseconds: whatever is measured is slower, or faster.
constexpr double no_time = 1e-9, long_time = 1e9;

/// With base.json, which two ranks have measured.
class Baseline : public support::InFolder {
 protected:
  Baseline() {
    expect_told(expect_done(reduce_all_on, small + "--json base.json", 2), 0,
                {"# for comparisons, every size is measured briefly 5 times more"});
    base_ = Json::parse(support::files_here()["./base.json"]);
  }

  /// The same file with times around `time_us`.
  void make(const std::string& name, double time_us) const {
    Json file = base_;
    for (Json& row : file["visits"])
      for (std::size_t i = 0; i < row["time_us"].size(); ++i)
        row["time_us"][i] = time_us * (1 + 0.001 * static_cast<double>(i));
    write(name, file.dump());
  }
  /// The same file with another value at `pointer`.
  void make_with(const std::string& name, const char* pointer, const Json& value) const {
    Json file = base_;
    file[Json::json_pointer{pointer}] = value;
    write(name, file.dump());
  }

  Json base_;
};

Ended compared(const std::string& words) { return reduce_all_on(support::words_of(words), 2); }

TEST_F(Baseline, HasAllVisitsOfAllRows) {
  ASSERT_EQ(base_["visits"].size(), 4U);
  for (const Json& row : base_["visits"]) EXPECT_EQ(row["time_us"].size(), 5U);
}

TEST_F(Baseline, WhatIsSlowerFailsAndIsNamed) {
  make("before.json", no_time);
  const Ended slower = compared(small + "--baseline before.json --json now.json --junit now.xml");
  expect_told(slower, 1,
              {"# now (1 launch) against before.json (1 launch)", "# all rows together: +",
               "# Regression           : SLOWER by more than 5 %: ring float32 sum at 8 B"});
  auto files = support::files_here();
  EXPECT_TRUE(has(files["./now.xml"], "<failure type=\"slower\" message=\"slower by more than 5 %: +"));
  EXPECT_TRUE(Json::parse(files["./now.json"])["comparison"]["slower"]);
  make("before.json", long_time);

  const Ended faster = compared(small + "--baseline before.json --tolerance 1000 --json now.json --junit now.xml");
  expect_told(
      faster, 0,
      {"# all rows together: -", "# Regression           : nothing is known to be slower by more than 1000 %\n"});
  files = support::files_here();
  EXPECT_TRUE(has(files["./now.xml"], "<testsuite name=\"reduce_all\" tests=\"5\" failures=\"0\""));
  EXPECT_FALSE(Json::parse(files["./now.json"])["comparison"]["slower"]);
}

TEST_F(Baseline, NamesSizesOfOneSideOnly) {
  for (const std::string name : {"a.json", "b.json"}) make(name, long_time);
  expect_told(compared(small + "-b 32 -e 128 --baseline a.json,b.json"), 0,
              {"# now (1 launch) against a.json, b.json (2 launches)",
               "# not measured now: ring float32 sum at 8 B; shm float32 sum at 8 B\n",
               "# not in the baseline: ring float32 sum at 128 B; shm float32 sum at 128 B\n"});
}

TEST_F(Baseline, FilesAreComparedWithoutMeasuring) {
  make("a.json", 10);
  make("slow.json", 20);
  make("same.json", 10.01);
  expect_told(compared("--baseline a.json --now same.json"), 0, {"now (1 launch) against a.json (1 launch)"});
  expect_told(compared("--baseline a.json --now slow.json,same.json --tolerance 1000"), 0,
              {"now (2 launches) against"});
  expect_told(compared("--baseline a.json --now slow.json --junit f.xml"), 1, {"SLOWER by more than 5 %: "});
  EXPECT_TRUE(has(support::files_here()["./f.xml"], "<failure type=\"slower\""));
  expect_refused(reduce_all_on, {"--baseline a.json --now slow.json -b 8", {"measures nothing"}});
}

TEST_F(Baseline, WhatTimeIsUpBeforeDoesNotPass) {
  make("before.json", long_time);
  const support::SetClock clock{{600}};
  const std::string words = small + "-n 10 --max-time 20min --baseline before.json --junit cut.xml";
  expect_told(support::reduce_all_by(clock)(support::words_of(words), 2), 1,
              {"# Regression           : UNFINISHED: the run ended before ", " of 4 rows\n"});
  EXPECT_TRUE(has(support::files_here()["./cut.xml"], "type=\"unfinished\""));
}

TEST_F(Baseline, RefusesWhatDoesNotCompare) {
  make_with("version.json", "/schema_version", 7);
  make_with("processor.json", "/meta/cpu_model", "6502");
  make_with("word.json", "/visits/0/time_us/0", "x");
  make_with("none.json", "/visits", Json::array());
  write("cut.json", base_.dump().substr(0, 2000));

  const auto beside = [](const std::string& words) { return small + "--json new.json --baseline " + words; };
  const support::Refused table[] = {
      {beside("base.json"), {"measured under other conditions: in this run ranks is 3, not 2"}, 3},
      {beside("base.json --buffers cold"), {"buffers is cold, not hot"}, 2},
      {beside("version.json"), {"its schema is lockstep.reduce_all, version 7"}, 2},
      {beside("processor.json"), {"cpu_model is ", ", not 6502"}, 2},
      {beside("cut.json"), {"cut.json: is not JSON"}, 3},
      {beside("word.json"), {"visits[0].time_us[0] is 'x'"}, 2},
      {beside("none.json"), {"has no visits"}, 2},
      {beside("base.json -b 4K -e 4K"), {"this run would measure no row of the baseline"}, 2},
      {beside("base.json,./base.json"), {"base.json' is named twice"}},
      {beside("base.json --junit base.json"), {"base.json' would be overwritten"}},
      {beside("."), {"it is not a regular file"}, 2},
      {beside("/dev/zero"), {"it is not a regular file"}, 2},
      {beside("base.json,nowhere.json"), {"cannot read 'nowhere.json': No such file"}, 2},
      {beside("base.json --junit nowhere/x.xml"), {"cannot write"}, 2},
  };
  for (const support::Refused& refused : table) expect_refused(reduce_all_on, refused);
}

}  // namespace
}  // namespace lockstep::reduce_all

#include "training/train/time_limit.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "support/set_clock.hpp"
#include "support/text.hpp"
#include "unit/io/temporary_folder.hpp"

namespace lockstep::training {
namespace {

TEST(TimeLimit, IsNearWhenASaveAndTheStepsBeforeItJustFit) {
  const support::SetClock clock;
  EXPECT_FALSE((TimeLimit{std::nullopt, clock}.is_near()));
  TimeLimit limit{core::Seconds{100}, clock};
  EXPECT_TRUE(limit.is_known());
  EXPECT_DOUBLE_EQ(limit.left().value, 100);
  EXPECT_FALSE(limit.is_near());
  limit.expect({500'000'000});  // 5 s at 100 MB/s
  limit.step_made({0.5});
  limit.step_made({1});
  EXPECT_DOUBLE_EQ(limit.reserve().value, 2 * 5 + 3 * 1 + 2);
  limit.saved({1});  // the slowest counts
  EXPECT_DOUBLE_EQ(limit.reserve().value, 15);
  clock.advance({84.5});
  EXPECT_DOUBLE_EQ(limit.left().value, 15.5);
  EXPECT_FALSE(limit.is_near());
  clock.advance({0.5});
  EXPECT_TRUE(limit.is_near());
  clock.advance({100});
  EXPECT_DOUBLE_EQ(limit.left().value, -85);
  EXPECT_TRUE(limit.is_near());
}

TEST(TimeLimit, IsByTheRealClock) {
  const TimeLimit limit{core::Seconds{3}, core::real_clock()};
  core::real_clock().sleep({0.001});
  EXPECT_LT(limit.left().value, 3);
}

TEST(TimeLimit, OfTheJobIsWhatSlurmSays) {
  const support::SetClock clock;
  for (const char* const variable : {"SLURM_JOB_END_TIME", "SLURM_JOB_ID", "PBS_JOBID"}) unsetenv(variable);
  EXPECT_FALSE(time_left_of_job(clock));
  const auto set = [](const std::string& text) { setenv("SLURM_JOB_END_TIME", text.c_str(), 1); };
  set(std::to_string(clock.date() + 600));
  ASSERT_TRUE(time_left_of_job(clock));
  EXPECT_EQ(time_left_of_job(clock)->value, 600);
  for (const std::string& text : {std::string{}, std::string{"soon"}, std::string{"12x"}, std::string{"-5"},
                                  std::to_string(clock.date() - 5), std::string{"99999999999999999999"}}) {
    set(text);
    testing::internal::CaptureStderr();
    EXPECT_FALSE(time_left_of_job(clock)) << text;
    const std::string warning = testing::internal::GetCapturedStderr();
    EXPECT_TRUE(support::has(warning, "warning: SLURM_JOB_END_TIME does not say when this job ends: '" + text + "'"))
        << warning;
    EXPECT_TRUE(support::has(warning, "--time-limit")) << warning;
  }
  unsetenv("SLURM_JOB_END_TIME");
}

/// Answers of batch systems, from programs in place of theirs.
class BatchSystem : public testing::Test {
 protected:
  void SetUp() override {
    TearDown();
    setenv("PATH", (folder_.path() + ":" + path_).c_str(), 1);
  }
  void TearDown() override {
    setenv("PATH", path_.c_str(), 1);
    for (const char* const variable : {"SLURM_JOB_END_TIME", "SLURM_JOB_ID", "PBS_JOBID"}) unsetenv(variable);
  }

  /// `answer`: lines of a shell, for the arguments `question`; fails for others.
  void put(const std::string& program, const std::string& question, const std::string& answer) const {
    io::put(folder_ / program, "#!/bin/sh\n[ \"$*\" = '" + question + "' ] || exit 153\n" + answer + "\n");
    std::filesystem::permissions(folder_ / program, std::filesystem::perms::owner_all);
  }
  /// Expects a warning that `question` was not answered.
  void expect_warning(const std::string& question) const {
    testing::internal::CaptureStderr();
    EXPECT_FALSE(time_left_of_job(clock_));
    const std::string text = testing::internal::GetCapturedStderr();
    EXPECT_TRUE(support::has(text, "warning: '" + question + "' does not report when this job ends")) << text;
  }

  io::TemporaryFolder folder_{};
  std::string path_ = std::getenv("PATH");
  const support::SetClock clock_{};
};

TEST_F(BatchSystem, PbsIsAskedForItsJob) {
  put("qstat", "-f 12.server",
      "echo 'Job Id: 12.server'; echo '    Resource_List.walltime = 00:10:00'\n"
      "echo \"    stime = $(LC_ALL=C date --date @1800000000 '+%a %b %e %H:%M:%S %Y')\"");
  setenv("PBS_JOBID", "12.server", 1);
  ASSERT_TRUE(time_left_of_job(clock_));
  EXPECT_EQ(time_left_of_job(clock_)->value, 600);
  setenv("PBS_JOBID", "13.server", 1);
  expect_warning("qstat -f 13.server");
}

TEST_F(BatchSystem, SlurmIsAskedWhereItsVariableIsNotSet) {
  const std::string question = "--noheader --jobs 7 --format %L";
  setenv("SLURM_JOB_ID", "7", 1);
  setenv("PBS_JOBID", "12.server", 1);
  put("squeue", question, "echo 10:02");
  ASSERT_TRUE(time_left_of_job(clock_));
  EXPECT_EQ(time_left_of_job(clock_)->value, 602);
  put("squeue", question, "echo UNLIMITED");
  testing::internal::CaptureStderr();
  EXPECT_FALSE(time_left_of_job(clock_));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "no limit is an answer";
  setenv("SLURM_JOB_ID", "8", 1);
  expect_warning("squeue --noheader --jobs 8 --format %L");
}

TEST(TimeLimit, OfASlurmJobIsWhatSqueueSays) {
  const auto left = [](std::string_view text) { return time_left_by_squeue(text)->value; };
  EXPECT_EQ(left("2:00\n"), 120);
  EXPECT_EQ(left("0:01"), 1);
  EXPECT_EQ(left("  1:02:03  \n"), 3723);
  EXPECT_EQ(left("2-00:00:01\n"), 172'801);
  EXPECT_TRUE(std::isinf(left("UNLIMITED\n")));
  for (const char* const text :
       {"", "\n", "INVALID", "NOT_SET", "0:00", "-0:05", "x-1:00", "1:00\n2:00", "99999999999-0:00"})
    EXPECT_FALSE(time_left_by_squeue(text)) << text;
}

constexpr const char* qstat_text = R"(Job Id: 12.server
    Job_Name = train
    resources_used.walltime = 00:00:07
    job_state = R
    ctime = Mon Nov 23 09:00:00 2026
    Error_Path = a:/home/user/of/a/long/path/that/is/folded/because/of/its/length/
	train.e12
    Resource_List.nodect = 2
    Resource_List.walltime = 01:02:03
    stime = Mon Nov 23 10:00:00 2026
    Variable_List = PBS_O_HOME=/home/user,stime = Mon Nov 23 11:00:00 2026,
)";

std::int64_t local_time(const char* text) {
  std::tm date{};
  strptime(text, "%Y-%m-%d %H:%M:%S", &date);
  date.tm_isdst = -1;
  return std::mktime(&date);
}

TEST(TimeLimit, OfAPbsJobIsWhatQstatSays) {
  const std::int64_t start = local_time("2026-11-23 10:00:00");
  EXPECT_EQ(time_left_by_qstat(qstat_text, start)->value, 3723);
  EXPECT_EQ(time_left_by_qstat(qstat_text, start + 3722)->value, 1);
  EXPECT_FALSE(time_left_by_qstat(qstat_text, start + 3723));
  const std::string text{qstat_text};
  const auto with = [&](const std::string& old, const std::string& other) {
    std::string changed = text;
    changed.replace(changed.find(old), old.size(), other);
    return time_left_by_qstat(changed, start);
  };
  EXPECT_EQ(with("01:02:03", "59")->value, 59);
  EXPECT_EQ(with("01:02:03", "100:00:00")->value, 360'000);
  EXPECT_EQ(with("    stime = ", "    start_time = ")->value, 3723) << "Torque";
  for (const char* const duration : {"", "UNLIMITED", "-1", "1:-2:3", "1:2:", "9999999999999:0:0"})
    EXPECT_FALSE(with("01:02:03", duration)) << duration;
  EXPECT_FALSE(with("Mon Nov 23 10:00:00 2026", "soon"));
  EXPECT_FALSE(with("    stime = ", "    mtime = ")) << "it has not started";
  EXPECT_FALSE(time_left_by_qstat("", start));
  EXPECT_FALSE(time_left_by_qstat("qstat: Unknown Job Id 12", start));
}

}  // namespace
}  // namespace lockstep::training

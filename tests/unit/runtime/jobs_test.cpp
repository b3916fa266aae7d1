#include "runtime/jobs.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

#include "unit/io/temporary_folder.hpp"

namespace lockstep::runtime {
namespace {

// The work of a job, for which this program is started again.
TEST(Job, DISABLED_WaitsForASignal) {
  for (;;) pause();
}
TEST(Job, DISABLED_EndsWithSeven) { _exit(7); }

std::vector<std::string> job(const std::string& name) {
  return {"--gtest_also_run_disabled_tests", "--gtest_filter=Job.DISABLED_" + name};
}

class JobsOfThisProgram : public testing::Test {
 protected:
  const io::TemporaryFolder folder_{};
  const JobOutput output_{folder_ / "out", folder_ / "err"};
};

TEST_F(JobsOfThisProgram, EndWithTheirCodesAndOutput) {
  Jobs jobs;
  EXPECT_EQ(jobs.run(job("EndsWithSeven"), output_), 7);
  EXPECT_NE(io::get(output_.out).find("DISABLED_EndsWithSeven"), std::string::npos);
  EXPECT_EQ(jobs.run(job("WaitsForASignal"), output_, [] { return SIGTERM; }), 128 + SIGTERM);
  EXPECT_EQ(jobs.asked(), 0);
}

// The signal is passed on, and no other job is started.
TEST_F(JobsOfThisProgram, GetWhatAsksThisProcessForAnEnd) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    std::signal(signal, SIG_DFL);  // otherwise it would stay ignored
    Jobs jobs;
    EXPECT_EQ(jobs.run(job("WaitsForASignal"), output_, [signal] { return raise(signal); }), 128 + signal);
    EXPECT_EQ(jobs.asked(), signal);
    EXPECT_EQ(jobs.run(job("EndsWithSeven"), output_), 128 + signal);
    EXPECT_EQ(io::get(output_.out), "");
  }
}

}  // namespace
}  // namespace lockstep::runtime

#include "unit/training/doctor/fixture.hpp"

namespace lockstep::training::doctor {
namespace {

TEST(DoctorEnvironment, IsLintedOfAllRanks) {
  Job job = healthy_job(1, 3);
  expect(check_environment(job), Verdict::ok, "no mistake in 2 variables");
  job.ranks[2].variables["NCCL_IB_DISABEL"] = "1";
  const Finding slip = check_environment(job);
  EXPECT_GE(slip.verdict, Verdict::warning) << slip.seen;
  expect(slip, slip.verdict, "NCCL_IB_DISABEL", "NCCL_IB_DISABLE");
  job.ranks[1].variables = job.ranks[2].variables;  // reported once
  EXPECT_EQ(check_environment(job), slip);
}

TEST(DoctorEnvironment, IsAsBadAsItsWorstSlip) {
  Job job = healthy_job(1, 1);
  std::map<std::string, std::string>& variables = job.ranks.front().variables;
  variables = {{"NCCL_QWERTYUIOP0", "1"}};
  expect(check_environment(job), Verdict::note, "NCCL_QWERTYUIOP0");
  for (int i = 1; i < 10; ++i) variables["NCCL_QWERTYUIOP" + std::to_string(i)] = "1";
  expect(check_environment(job), Verdict::note, "\n2 more");
  variables["MASTER_ADDRESS"] = "node0";
  expect(check_environment(job), Verdict::warning, "MASTER_ADDRESS", "MASTER_ADDR");
}

TEST(DoctorEnvironment, FailsOnlyForWhatMpiReads) {
  Job job = healthy_job(1, 1);
  std::map<std::string, std::string>& variables = job.ranks.front().variables;
  variables = {{"NCCL_P2P_LEVEL", "XX"}, {"NCCL_DEBUG", "foo"}, {"RANK", "2"}, {"WORLD_SIZE", "2"}};
  expect(check_environment(job), Verdict::warning, "NCCL_DEBUG=foo");
  variables["UCX_LOG_LEVEL"] = "foo";
  expect(check_environment(job), Verdict::fail, "UCX_LOG_LEVEL=foo");
}

TEST(DoctorEnvironment, KnowsTheFabric) {
  Job job = healthy_job(1, 1);
  job.ranks.front().variables = {{"FI_MR_CACHE_MONITOR", "memhooks"}};
  EXPECT_EQ(check_environment(job).verdict, Verdict::ok) << check_environment(job).seen;
  job.ranks.front().node.ports = {{.name = "cxi0", .kind = "Slingshot", .is_active = true, .gbps = 200}};
  expect(check_environment(job), Verdict::warning, "memhooks");
}

}  // namespace
}  // namespace lockstep::training::doctor

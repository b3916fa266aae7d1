#include "support/set_clock.hpp"
#include "training/doctor/meeting.hpp"
#include "training/doctor/variables.hpp"
#include "unit/io/temporary_folder.hpp"
#include "unit/training/doctor/fixture.hpp"

namespace lockstep::training::doctor {
namespace {

TEST(DoctorClocks, AreAsFarApartAsIsSure) {
  Job job = healthy_job(3, 1);
  expect(check_clocks(job), Verdict::ok, "within 1 s");
  job.ranks[1].node.clock_low = 2.5;
  job.ranks[1].node.clock_high = 2.6;
  expect(check_clocks(job), Verdict::warning, "2.5 s ahead of rank 0's on node1", "NTP");
  job.ranks[1].node.clock_low = -700;
  job.ranks[1].node.clock_high = -600;
  expect(check_clocks(job), Verdict::warning, "600.0 s behind rank 0's on node1");
  job.ranks[1].node.clock_low = -5;  // a long round proves nothing
  job.ranks[1].node.clock_high = 5;
  expect(check_clocks(job), Verdict::ok, "within 1 s");
  expect(check_clocks(healthy_job(1, 2)), Verdict::skipped, "one node");
}

TEST(DoctorClocks, AreBoundedByTheFastestRounds) {
  const Skew skew = bound_skew({{10, 15, 12}, {20, 25.1, 20.2}, {30, 34.9, 30.5}});
  EXPECT_NEAR(skew.low, 4.9, 1e-9);   // the second: read when it was 20.2 at the latest
  EXPECT_NEAR(skew.high, 4.9, 1e-9);  // the third: when it was 30 at the earliest
}

/// Makes a file when so much time has passed.
class FileMaker : public support::SetClock {
 public:
  FileMaker(std::string path, double after_s) : path_{std::move(path)}, at_s_{now().value + after_s} {}

  void sleep(core::Seconds time) const override {
    support::SetClock::sleep(time);
    if (now().value > at_s_) io::put(path_, "");
  }

 private:
  std::string path_;
  double at_s_;
};

TEST(DoctorFolder, IsLookedIntoForTenSeconds) {
  const io::TemporaryFolder folder;
  const FileMaker in_time{folder / "a", 9.5}, late{folder / "b", 10.5};
  EXPECT_TRUE(await_file(folder / "a", in_time));
  EXPECT_FALSE(await_file(folder / "b", late));
  EXPECT_NEAR(static_cast<double>(late.pauses().size()), 100, 1);
}

TEST(DoctorNames, AreKnownToEachNode) {
  Job job = healthy_job(2, 1);
  expect(check_names(job), Verdict::ok, "all known");
  job.ranks[1].node.unresolved = {"node0.cluster (Name or service not known)"};
  expect(check_names(job), Verdict::warning, "unknown: node0.cluster (Name or service not known) on node1", "getent");
  job.ranks[1].node.n_resolved = -1;
  expect(check_names(job), Verdict::warning, "did not answer within 5 s on node1", "DNS");
  expect(check_names(healthy_job(1, 2)), Verdict::skipped, "one node");
}

TEST(DoctorNames, AreLookedUp) {
  const Resolved resolved = resolve({"localhost", "nosuch.invalid"});
  if (resolved.n < 0) GTEST_SKIP() << "the name service here does not answer";
  EXPECT_EQ(resolved.n, 2);
  ASSERT_EQ(resolved.unresolved.size(), 1);
  EXPECT_TRUE(support::has(resolved.unresolved.front(), "nosuch.invalid (")) << resolved.unresolved.front();
}

TEST(DoctorProgram, IsOneFile) {
  Job job = healthy_job(2, 2);
  expect(check_program(job), Verdict::ok, "lockstep 0.1.0, digest 01234567");
  for (const std::size_t rank : {2, 3}) job.ranks[rank].digest = "fedcba9876543210";
  expect(check_program(job), Verdict::fail, "digest 01234567 on node0; lockstep 0.1.0, digest fedcba98 on node1",
         "install");
  job.ranks[3].digest = job.ranks[0].digest;  // within a node: by rank
  expect(check_program(job), Verdict::fail, "digest fedcba98 on rank 2 (node1)");
}

TEST(DoctorLibraries, AreToldByNode) {
  Job job = healthy_job(2, 1);
  expect(check_libraries(job), Verdict::ok, "1 compared");
  job.ranks[1].libraries.front().path = "/opt/libmpi.so.40";
  expect(check_libraries(job), Verdict::warning,
         "libmpi.so.40: /usr/lib/libmpi.so.40 (1 MB, of 2023-11-14 22:13:20) on node0; /opt/libmpi.so.40", "modules");
  job.ranks[1].libraries.clear();
  expect(check_libraries(job), Verdict::warning, "not loaded on node1");
  expect(check_libraries(healthy_job(1, 1)), Verdict::skipped, "one rank");
}

TEST(DoctorVariables, AreSetAlike) {
  Job job = healthy_job(1, 3);
  expect(check_variables(job), Verdict::ok, "2 compared");
  job.ranks[1].variables["NCCL_DEBUG"] = "INFO";
  expect(check_variables(job), Verdict::warning,
         "NCCL_DEBUG: not set on rank 0 (node0), rank 2 (node0); 'INFO' on rank 1", "mpirun -x NAME");
  job.ranks[1].variables.erase("NCCL_DEBUG");
  job.ranks[1].variables["CUDA_VISIBLE_DEVICES"] = "1";
  expect(check_variables(job), Verdict::ok, "2 compared");
  for (int i = 0; i < 9; ++i) job.ranks[2].variables["UCX_" + std::to_string(i)] = "x";
  expect(check_variables(job), Verdict::warning, "\n4 more");
  expect(check_variables(healthy_job(1, 1)), Verdict::skipped, "one rank");
}

TEST(DoctorVariables, AreOfAnAllowList) {
  for (const char* const name : {"NCCL_DEBUG", "UCX_TLS", "OMPI_MCA_pml", "MPICH_GPU_SUPPORT_ENABLED",
                                 "OMP_NUM_THREADS", "MASTER_ADDR", "SLURM_JOB_ID"})
    EXPECT_TRUE(is_looked_at(name)) << name;
  for (const char* const name : {"HOME", "AWS_SECRET_ACCESS_KEY", "SLURM_JWT_TOKEN", "PATH", "PBS_COOKIE"})
    EXPECT_FALSE(is_looked_at(name)) << name;
  for (const char* const name : {"SLURM_PROCID", "PALS_RANKID", "CUDA_VISIBLE_DEVICES", "SLURM_STEP_ID"})
    EXPECT_TRUE(is_of_rank(name)) << name;
  for (const char* const name : {"SLURM_JOB_ID", "PBS_JOBID", "NCCL_DEBUG", "OMP_NUM_THREADS"})
    EXPECT_FALSE(is_of_rank(name)) << name;
}

TEST(DoctorNodes, AreOfOneKind) {
  Job job = healthy_job(3, 1);
  expect(check_nodes_alike(job), Verdict::ok, "AMD EPYC, Linux 6.1");
  job.ranks[2].node.cpu_model = "Intel Xeon";
  expect(check_nodes_alike(job), Verdict::note, "AMD EPYC, Linux 6.1 on node0, node1; Intel Xeon, Linux 6.1 on node2",
         "--constraint");
  expect(check_nodes_alike(healthy_job(1, 2)), Verdict::skipped, "one node");
}

}  // namespace
}  // namespace lockstep::training::doctor

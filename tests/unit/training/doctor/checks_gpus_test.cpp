#include "training/doctor/gpus.hpp"
#include "unit/training/doctor/fixture.hpp"

namespace lockstep::training::doctor {
namespace {

const SeenGpu one{.name = "NVIDIA H200", .uuid = "GPU-11111111-2222"};
const SeenGpu two{.name = "NVIDIA H200", .uuid = "GPU-33333333-4444"};

/// Two ranks of a node, each of which sees these GPUs.
Job job_with(const std::vector<SeenGpu>& seen, const std::string& device = "auto") {
  Job job = healthy_job(1, 2);
  job.request.device = device;
  job.ranks.front().node.gpus = {"NVIDIA H200", "NVIDIA H200"};
  for (Facts& facts : job.ranks)
    facts.gpus = {.seen = seen, .driver = "13.0", .toolkit = "12.4", .cudnn = "9.19.0", .nccl = "2.28.9"};
  return job;
}

Job job_without(const std::string& device) {
  Job job = job_with({}, device);
  for (Facts& facts : job.ranks) {
    facts.gpus.obstacle = "the NVIDIA driver supports CUDA 12.2, but this program needs CUDA 13.0";
    facts.gpus.fix = "build with CUDA 12.2, or ask the administrator to update the driver";
  }
  return job;
}

TEST(DoctorGpus, AreOfNoUseToAProgramWithoutCuda) {
  Job job = healthy_job(1, 2);
  expect(check_gpus(job), Verdict::skipped, "not checked: no NVIDIA GPU here");
  job.ranks.front().node.gpus = {"NVIDIA H200"};
  expect(check_gpus(job), Verdict::note, "1 x NVIDIA H200; this program is built without CUDA", "nvcc");
  job.request.device = "cuda";
  expect(check_gpus(job), Verdict::fail, "built without CUDA", "--device host");
  job.request.device = "host";
  expect(check_gpus(job), Verdict::skipped, "the job computes on the host");
}

TEST(DoctorGpus, AreNamedWithVersionsAndOwners) {
  expect(check_gpus(job_with({one, two})), Verdict::ok,
         "2 x NVIDIA H200 for 2 ranks; driver for CUDA 13.0, program with 12.4, cuDNN 9.19.0, NCCL 2.28.9; each rank "
         "may use any");
  Job job = job_with({one}, "cuda");
  job.ranks[1].gpus.seen = {two};
  expect(check_gpus(job), Verdict::ok, "rank 0: GPU-11111111, rank 1: GPU-33333333");
  job.ranks[1].gpus.seen.front().name = "NVIDIA L4";
  expect(check_gpus(job), Verdict::ok, "2 x NVIDIA H200 and NVIDIA L4 for 2 ranks");
}

TEST(DoctorGpus, HaveAnNcclThatIsNewEnough) {
  Job job = job_with({one, two});
  for (Facts& facts : job.ranks)
    facts.gpus.nccl_obstacle = "NCCL 2.17.4 is too old", facts.gpus.nccl_fix = "module load nccl";
  expect(check_gpus(job), Verdict::fail, "NCCL 2.17.4 is too old", "module load nccl");
  job.request.shares_gpu = true;
  expect(check_gpus(job), Verdict::ok, "2 x NVIDIA H200");
  job.request.shares_gpu = false;
  job.ranks.resize(1);
  expect(check_gpus(job), Verdict::ok, "2 x NVIDIA H200");
}

TEST(DoctorGpus, AreEnoughForAllRanks) {
  expect(check_gpus(job_with({one}, "cuda")), Verdict::fail, "rank 0 (node0) and rank 1 see only GPU-11111111-2222",
         "srun without --gpu-bind");
  expect(check_gpus(job_with({one})), Verdict::warning, "see only GPU-");
  Job job = healthy_job(1, 3);
  job.request.device = "cuda";
  for (Facts& facts : job.ranks) facts.gpus = {.seen = {one, two}, .driver = "13.0", .toolkit = "13.0"};
  expect(check_gpus(job), Verdict::fail, "3 ranks for 2 GPUs", "--share-gpu");
  job.request.shares_gpu = true;
  expect(check_gpus(job), Verdict::ok, "2 x NVIDIA H200 for 3 ranks");
}

TEST(DoctorGpus, ThatCannotBeUsedAreExplained) {
  expect(check_gpus(job_without("cuda")), Verdict::fail, "supports CUDA 12.2, but", "update the driver");
  expect(check_gpus(job_without("auto")), Verdict::warning, "13.0; the job would compute on the host");
  Job job = job_without("auto");
  job.ranks.front().node.gpus.clear();
  expect(check_gpus(job), Verdict::skipped, "no GPU for this job: the NVIDIA driver supports");
  job.ranks[1].gpus.seen = {one};
  expect(check_gpus(job), Verdict::warning, "rank 0 (node0), unlike other ranks of its node: the NVIDIA driver");
}

TEST(DoctorGpus, AreJudgedNodeByNode) {
  Job job = healthy_job(2, 1);
  for (Facts& facts : job.ranks) facts.gpus = {.seen = {one}, .driver = "13.0", .toolkit = "13.0"};
  job.request.device = "cuda";
  EXPECT_EQ(check_gpus(job).verdict, Verdict::ok);
  job.ranks[1].gpus = {.obstacle = "no driver", .fix = "another node", .toolkit = "13.0"};
  expect(check_gpus(job), Verdict::fail, "no driver on node1", "another node");
}

TEST(DoctorGpus, HaveRoomForTheRecipe) {
  Job job = healthy_job(2, 1);
  for (Facts& facts : job.ranks) facts.gpus = {.seen = {one}, .driver = "13.0", .toolkit = "13.0"};
  job.need.emplace();
  expect(check_gpus(job), Verdict::ok, "program with 13.0");
  job.need->of_gpu = MemoryNeed{
      .activations = 3'000'000'000, .arena = 1'000'000'000, .parameters = 1'000'000'000, .gradients = 1'000'000'000};
  expect(check_gpus(job), Verdict::ok, "5 GB needed per rank");
  job.need->gpu_misfits.emplace(
      1, core::Error{core::ExitCode::usage, {.what = "a rank on node1 needs 5 GB", .fix = "--batch 8"}});
  expect(check_gpus(job), Verdict::fail, "a rank on node1 needs 5 GB", "--batch 8");
}

TEST(DoctorGpus, AreComputedOnWhereAllRanksHaveThem) {
  Job job = healthy_job(2, 1);
  EXPECT_FALSE(computes_on_gpus(job));
  for (Facts& facts : job.ranks) facts.gpus = {.seen = {one}, .driver = "13.0", .toolkit = "13.0"};
  EXPECT_TRUE(computes_on_gpus(job));
  job.request.device = "host";
  EXPECT_FALSE(computes_on_gpus(job));
  job.request.device = "auto";
  job.ranks[1].gpus = {.obstacle = "no driver", .toolkit = "13.0"};
  job.ranks[1].node.gpus.clear();
  EXPECT_FALSE(computes_on_gpus(job)) << "no GPU for ranks of the second node";
}

TEST(DoctorGpus, TravelWithTheirRank) {
  SeenGpu large = two;
  large.memory = 150'000'000'000;
  const Facts back = facts_from_text(to_text(job_with({one, large}).ranks.front()));
  EXPECT_EQ(back.gpus.seen, (std::vector<SeenGpu>{one, large}));
  EXPECT_EQ(back.gpus.nccl, "2.28.9");
}

TEST(DoctorGpus, OfThisMachineAreLookedAt) {
  const GpuFacts facts = look_at_gpus();
  EXPECT_NE(facts.seen.empty(), facts.obstacle.empty());
  EXPECT_EQ(version_of_number(91900), "9.19.0");
}

}  // namespace
}  // namespace lockstep::training::doctor

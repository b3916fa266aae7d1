#include "unit/training/doctor/fixture.hpp"
#include "unit/training/train/divided.hpp"

namespace lockstep::training::doctor {
namespace {

constexpr std::uint64_t gb = 1'000'000'000, mib = std::uint64_t{1} << 20;

/// As healthy_job(), with the need of 2 ranks of a node: 8 GB each, and 3 GB that they share.
Job job_with_need() {
  Job job = healthy_job(2, 2);
  job.need = Need{.recipe = {.batch = 64}, .checkpoint = {2 * gb}};
  job.need->memory[2] = {.activations = 8 * gb,
                         .at_a_time = 16,
                         .batch = 64,
                         .arena = gb,
                         .kept = divided(gb),
                         .parameters = gb,
                         .gradients = gb};
  return job;
}

TEST(DoctorGovernor, IsPerformance) {
  Job job = healthy_job(2, 1);
  expect(check_governor(job), Verdict::ok, "performance");
  job.ranks[1].node.governors = {"powersave"};
  expect(check_governor(job), Verdict::warning, "powersave: processors may run below their full clock on node1",
         "cpupower");
  for (Facts& facts : job.ranks) facts.node.governors.clear();
  expect(check_governor(job), Verdict::skipped, "not checked: the system does not report");
}

TEST(DoctorHugePages, MayBeOff) {
  Job job = healthy_job(1, 1);
  expect(check_huge_pages(job), Verdict::ok, "madvise");
  job.ranks.front().node.huge_pages = "never";
  expect(check_huge_pages(job), Verdict::note, "never", "transparent_hugepage/enabled");
  job.ranks.front().node.huge_pages.clear();
  expect(check_huge_pages(job), Verdict::skipped, "the kernel does not report");
}

TEST(DoctorNumaBalancing, MattersWithSeveralNumaNodes) {
  Job job = healthy_job(1, 1);
  expect(check_numa_balancing(job), Verdict::ok, "off, 1 NUMA node");
  NodeFacts& node = job.ranks.front().node;
  node.numa_balancing = 1;
  expect(check_numa_balancing(job), Verdict::ok, "on, 1 NUMA node");
  node.n_numa = 4;
  expect(check_numa_balancing(job), Verdict::note, "on, 4 NUMA nodes", "kernel.numa_balancing=0");
  node.numa_balancing = 0;
  expect(check_numa_balancing(job), Verdict::ok, "off, 4 NUMA nodes");
  node.numa_balancing = -1;
  expect(check_numa_balancing(job), Verdict::skipped, "the kernel has none");
}

TEST(DoctorMemory, IsComparedWithTheNeedOfTheRecipe) {
  Job job = job_with_need();
  job.ranks[2].node.memory = 32 * gb;
  expect(check_memory(job), Verdict::ok,
         "32 GB left, 19 GB needed by 2 ranks of a node, on node1, which has the least");
  job.ranks[2].node.memory = 10 * gb;
  expect(check_memory(job), Verdict::fail, "2 ranks on node1 need 19 GB", "--batch");
  job.need.reset();
  expect(check_memory(job), Verdict::ok, "10 GB left, on node1, which has the least; --recipe R adds the need");
  job.ranks[2].node.memory = 0;
  job.ranks[0].node.memory = 0;
  expect(check_memory(job), Verdict::skipped, "does not report");
}

TEST(DoctorMemory, IsAlsoLimitedByUlimit) {
  Job job = job_with_need();
  job.ranks[3].limits.address_space_left = gb;
  expect(check_memory(job), Verdict::fail, "its limit of address space (ulimit -v) leaves 1 GB");
}

TEST(DoctorSharedMemory, IsWhatRanksOfANodeShare) {
  Job job = job_with_need();
  expect(check_shared_memory(job), Verdict::ok, "32 GB of 32 GB free, 3 GB needed");
  job.ranks[2].node.shm_free = 2 * gb;
  expect(check_shared_memory(job), Verdict::fail, "/dev/shm has 2 GB left on node1", "--shm-size");
}

TEST(DoctorSharedMemory, OfAContainerIsLittle) {
  Job job = healthy_job(1, 2);
  job.ranks.front().node.shm_free = 60 * mib;
  expect(check_shared_memory(job), Verdict::warning, "little for 2 ranks", "--shm-size");
  job.ranks.front().node.shm_size = 0;
  expect(check_shared_memory(job), Verdict::fail, "there is no /dev/shm", "mount");
  job = healthy_job(1, 1);
  job.ranks.front().node.shm_size = 0;
  expect(check_shared_memory(job), Verdict::note, "there is no /dev/shm");
  job = healthy_job(1, 1);
  job.ranks.front().node.shm_free = 60 * mib;
  expect(check_shared_memory(job), Verdict::ok, "free");
}

TEST(DoctorLockedMemory, MattersToAFabric) {
  Job job = healthy_job(2, 1);
  EXPECT_EQ(check_locked_memory(job).seen, "unlimited");
  job.ranks[1].limits.locked_memory = 8 * mib;
  expect(check_locked_memory(job), Verdict::warning, "8.39 MB: adapters of the fabric cannot register", "LimitMEMLOCK");
  for (Facts& facts : job.ranks) facts.node.ports.front().kind = "Ethernet";
  expect(check_locked_memory(job), Verdict::ok, "no fabric in use needs more");
}

TEST(DoctorLimits, OfFilesStackAndCores) {
  Job job = healthy_job(1, 2);
  expect(check_open_files(job), Verdict::ok, "4096");
  expect(check_stack(job), Verdict::ok, "8.39 MB");
  expect(check_core_files(job), Verdict::ok, "none");
  job.ranks[1].limits = {.open_files = 256, .stack = mib, .core_file = unlimited};
  expect(check_open_files(job), Verdict::warning, "256 for a process", "ulimit -n");
  expect(check_stack(job), Verdict::warning, "1.05 MB: threads of libraries may overflow it", "ulimit -s");
  expect(check_core_files(job), Verdict::note, "a rank that crashes may write all its memory", "ulimit -c 0");
}

}  // namespace
}  // namespace lockstep::training::doctor

#include "site/request.hpp"

#include <gtest/gtest.h>

namespace lockstep::site {
namespace {

Chunk first_chunk(const std::string& text) { return read_request(read_job_script(text)).chunks.at(0); }

TEST(Request, TimesOfSlurm) {
  EXPECT_EQ(slurm_minutes("90"), 90);
  EXPECT_EQ(slurm_minutes("30:30"), 30.5);
  EXPECT_EQ(slurm_minutes("01:30:00"), 90);
  EXPECT_EQ(slurm_minutes("1-0"), 1440);
  EXPECT_EQ(slurm_minutes("2-01:30"), 2970);
  for (const char* const wrong : {"", "=1", "1:2:3:4", "a", "-5", "1-", "1h", "12:-1"})
    EXPECT_EQ(slurm_minutes(wrong), std::nullopt) << wrong;
}

TEST(Request, TimesOfPbs) {
  EXPECT_EQ(pbs_minutes("12:00:00"), 720);
  EXPECT_EQ(pbs_minutes("30:00"), 30);
  EXPECT_EQ(pbs_minutes("60"), 1);
  EXPECT_EQ(pbs_minutes("12h"), std::nullopt);
}

TEST(Request, Sizes) {
  EXPECT_EQ(memory_gb("208G", BatchSystem::slurm), 208);
  EXPECT_EQ(memory_gb("1000gb", BatchSystem::slurm), 1000);
  EXPECT_EQ(memory_gb("2048", BatchSystem::slurm), 2);
  EXPECT_EQ(memory_gb("0", BatchSystem::slurm), 0);
  EXPECT_EQ(memory_gb("2t", BatchSystem::pbs), 2048);
  for (const char* const wrong : {"", "G", "10X", "-1G", "10GBs", "inf"})
    EXPECT_EQ(memory_gb(wrong, BatchSystem::slurm), std::nullopt) << wrong;
}

TEST(Request, GenericResources) {
  const auto all = read_gres("gpu:a100:4,gpu,nvme:1,gpu:b200");
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].type, "a100");
  EXPECT_EQ(all[0].count, 4);
  EXPECT_EQ(all[1].count, 1);
  EXPECT_EQ(all[2].name, "nvme");
  EXPECT_EQ(all[3].type, "b200");
  EXPECT_EQ(read_gres("gpu:a:b:c").front().count, std::nullopt);
}

TEST(Request, RanksOfANode) {
  EXPECT_EQ(first_chunk("#SBATCH -N 2 -n 7\n").ranks->value, 4);
  EXPECT_EQ(first_chunk("#SBATCH -N 2-4 --ntasks-per-node=8 -c 2\n").cores->value, 16);
  EXPECT_EQ(first_chunk("#SBATCH -N 2-4 --ntasks-per-node=8\n").nodes->value, 4);
  EXPECT_EQ(first_chunk("#SBATCH --ntasks=8 --ntasks-per-node=4\n").nodes->value, 2);
  EXPECT_FALSE(first_chunk("#SBATCH --nodes=many\n").nodes);
}

TEST(Request, GpusOfANode) {
  EXPECT_EQ(first_chunk("#SBATCH -N 2 --gpus=8\n").gpus->value, 4);
  EXPECT_EQ(first_chunk("#SBATCH --gpus-per-node=a100:4\n").gpu->value, "a100");
  EXPECT_EQ(first_chunk("#SBATCH --gres=gpu:b200:8\n").gpus->value, 8);
  EXPECT_EQ(first_chunk("#SBATCH --ntasks-per-node=4 --gpus-per-task=1\n").gpus->value, 4);
}

TEST(Request, NumbersThatNoJobHasAreLeftOut) {
  const Chunk chunk =
      first_chunk("#SBATCH --ntasks-per-node=9223372036854775807 --cpus-per-task=9223372036854775807\n");
  EXPECT_FALSE(chunk.ranks);
  EXPECT_FALSE(chunk.cores);
}

TEST(Request, ChunksOfPbs) {
  const Request request = read_request(read_job_script(
      "#PBS -l select=2:ncpus=64:mpiprocs=4:ngpus=4:mem=480gb+1:ncpus=128,walltime=06:00:00\n#PBS -q main\n"));
  ASSERT_EQ(request.chunks.size(), 2U);
  EXPECT_EQ(request.chunks[0].nodes->value, 2);
  EXPECT_EQ(request.chunks[0].gpus->value, 4);
  EXPECT_EQ(request.chunks[0].memory_gb->value, 480);
  EXPECT_EQ(request.chunks[1].cores->value, 128);
  EXPECT_EQ(request.minutes->value, 360);
  EXPECT_EQ(request.partition->value, "main");
}

}  // namespace
}  // namespace lockstep::site
